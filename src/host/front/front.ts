import { Worker } from 'node:worker_threads'
import type { TlsMaterial } from '../../protocol/boot.ts'
import type { FrontLimits } from './limits.ts'
import { fromFrontSchema, type FrontPlan, type FromFront, type ToFront } from './messages.ts'
import type { Pressure } from './connection-table.ts'

/**
 * What stands between clients and a worker: it owns the public sockets for as long as this process lives, while the
 * workers behind it come and go, and it bounds connections, because workerd accepts until its descriptors run out and
 * ends then. Bytes pass through as they are, so TLS ends in the worker.
 */
export interface Front {
  readonly httpPort: number
  readonly httpsPort: number
  /** Connections go to the worker on these ports of loopback from now on. */
  relayTo(ports: { readonly http: number; readonly https: number }): void
  /** Connections that come from now on wait for the next worker. */
  hold(): void
  /** Answers every request on a new connection with 503, `Retry-After` and `Connection: close`. */
  refuse(tls: TlsMaterial | null): void
  close(): Promise<void>
}

/** A socket could not be opened there. */
export class AddressUnavailable extends Error {
  /** `host:port`. */
  readonly address: string
  /** Of the system, such as `EADDRINUSE`. */
  readonly code: string

  constructor(address: string, code: string) {
    super(`${address} cannot be opened: ${code}`)
    this.name = 'AddressUnavailable'
    this.address = address
    this.code = code
  }
}

export interface FrontOptions {
  readonly http: FrontPlan['http']
  readonly https: FrontPlan['https']
  /** Whether other fronts share the addresses; the kernel then deals connections out evenly. */
  readonly shared: boolean
  readonly limits: FrontLimits
  /** Keys the addresses that stand for clients. */
  readonly sourceKey: Uint8Array
  /** Told now and then when connections had to be turned away. */
  readonly pressed: (pressure: Pressure) => void
}

/**
 * A thread of its own, so that connections are accepted and relayed whatever the supervisor is busy with.
 * @throws AddressUnavailable
 */
export async function openFront({ pressed, ...options }: FrontOptions): Promise<Front> {
  const workerData: FrontPlan = { ...options, sourceKey: Uint8Array.from(options.sourceKey) }
  const thread = new Worker(new URL('./front-thread.ts', import.meta.url), { workerData })
  thread.unref()
  const {
    promise: opened,
    resolve,
    reject,
  } = Promise.withResolvers<Extract<FromFront, { type: 'open' }>>()
  thread.on('message', (message) => {
    const said = fromFrontSchema.parse(message)
    if (said.type === 'open') resolve(said)
    else if (said.type === 'pressed') pressed(said)
    else reject(new AddressUnavailable(said.address, said.code))
  })
  const tell = (message: ToFront) => {
    // eslint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    thread.postMessage(message)
  }
  const { http, https } = await opened.catch(async (error: unknown) => {
    await thread.terminate()
    throw error
  })
  return {
    httpPort: http,
    httpsPort: https,
    relayTo: ({ http: plain, https: secure }) => {
      tell({ type: 'relay', to: { http: plain, https: secure } })
    },
    hold: () => tell({ type: 'relay', to: null }),
    refuse: (tls) => {
      tell({ type: 'refuse', tls: tls && { keyPem: tls.keyPem, certPem: tls.certPem } })
    },
    close: async () => void (await thread.terminate()),
  }
}
