import { Worker } from 'node:worker_threads'
import type { TlsMaterial } from '../../protocol/boot.ts'
import type { FrontLimits } from './limits.ts'
import { fromFrontSchema, type FrontPlan, type FromFront, type ToFront } from './messages.ts'
import type { Pressure } from './connection-table.ts'

/**
 * A TCP proxy between clients and a worker. It keeps the public sockets open while workers are replaced, and limits
 * connections, because workerd accepts connections until its file descriptors run out and then exits. Bytes are relayed
 * unchanged, so TLS ends in the worker.
 */
export interface Front {
  readonly httpPort: number
  readonly httpsPort: number
  /** Relays new and waiting connections to the worker on these loopback ports from now on. */
  relayTo(ports: { readonly http: number; readonly https: number }): void
  /**
   * Lets new connections wait for the next worker from now on. Resolves when the worker has received everything that it
   * was given and no TLS handshake with it is in progress, or after three seconds: then it can be told to end.
   */
  hold(): Promise<void>
  /** Answers every request on a new connection with 503, `Retry-After` and `Connection: close`. */
  refuse(tls: TlsMaterial | null): void
  close(): Promise<void>
}

/** A socket could not be opened on this address. */
export class AddressUnavailable extends Error {
  /** `host:port`. */
  readonly address: string
  /** The system's error code, such as `EADDRINUSE`. */
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
  /** Whether other fronts share the addresses; the kernel then distributes connections evenly. */
  readonly shared: boolean
  readonly limits: FrontLimits
  /** How long a client may leave data unread that waits for it, ms. */
  readonly unreadMs: number
  /** The key of the hash that gives each client a loopback address. */
  readonly sourceKey: Uint8Array
  /** Called every 10 seconds in which connections were refused or closed. */
  readonly pressed: (pressure: Pressure) => void
  /** Called every 10 seconds in which clients were disconnected because they did not read. */
  readonly unread: (count: number) => void
}

/**
 * Starts a front in its own thread, so that work of the supervisor does not delay connections.
 * @throws AddressUnavailable when an address cannot be opened
 */
export async function openFront({ pressed, unread, ...options }: FrontOptions): Promise<Front> {
  const workerData: FrontPlan = { ...options, sourceKey: Uint8Array.from(options.sourceKey) }
  const thread = new Worker(new URL('./front-thread.ts', import.meta.url), { workerData })
  thread.unref()
  const {
    promise: opened,
    resolve,
    reject,
  } = Promise.withResolvers<Extract<FromFront, { type: 'open' }>>()
  /** Resolvers of the calls of `hold` that have not been answered. */
  const holding: (() => void)[] = []
  thread.on('message', (message) => {
    const said = fromFrontSchema.parse(message)
    if (said.type === 'open') resolve(said)
    else if (said.type === 'pressed') pressed(said)
    else if (said.type === 'unread') unread(said.count)
    else if (said.type === 'quiet') holding.shift()?.()
    else reject(new AddressUnavailable(said.address, said.code))
  })
  const send = (message: ToFront) => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
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
      send({ type: 'relay', to: { http: plain, https: secure } })
    },
    hold: () => {
      const { promise, resolve: quiet } = Promise.withResolvers<void>()
      holding.push(quiet)
      send({ type: 'relay', to: null })
      return promise
    },
    refuse: (tls) => {
      send({ type: 'refuse', tls: tls && { keyPem: tls.keyPem, certPem: tls.certPem } })
    },
    close: async () => void (await thread.terminate()),
  }
}
