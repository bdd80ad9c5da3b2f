import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { z } from 'zod'
import type { TlsMaterial } from '../../protocol/boot.ts'
import type { ListenAddress } from './listen-address.ts'
import { StartError } from './start-error.ts'

/**
 * A TCP socket that is open for as long as this process lives, while the processes that accept on it come and go:
 * connections that arrive in between wait in the kernel's queue. This process itself accepts only to say goodbye.
 */
export interface ListeningSocket {
  /** For children to inherit. */
  readonly fd: number
  readonly port: number
  /** Answers every further request with 503, `Retry-After` and `Connection: close`. */
  refuse(tls: TlsMaterial | null): void
  close(): Promise<void>
}

/** When a client that met a stopping instance should try again. */
const RETRY_AFTER_SECONDS = 5

const openedSchema = z.union([
  z.object({ fd: z.int(), port: z.int() }),
  z.object({ error: z.string() }),
])

export interface SocketKind {
  /** Whether clients speak TLS on it. */
  readonly secure: boolean
  /** Whether other sockets share the address; the kernel then deals connections out evenly. */
  readonly shared: boolean
}

/** @throws StartError when the address cannot be opened */
export async function openListeningSocket(
  { host, port }: ListenAddress,
  { secure, shared }: SocketKind,
): Promise<ListeningSocket> {
  const gate = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
  const thread = new Worker(new URL('./listening-thread.ts', import.meta.url), {
    workerData: { host, port, secure, shared, gate, retryAfterSeconds: RETRY_AFTER_SECONDS },
  })
  thread.unref()
  const [message]: unknown[] = await once(thread, 'message')
  const opened = openedSchema.parse(message)
  if ('error' in opened) {
    await thread.terminate()
    const why = opened.error === 'EADDRINUSE' ? 'is in use' : `cannot be opened (${opened.error})`
    throw new StartError(`${host}:${port} ${why}`)
  }
  return {
    ...opened,
    refuse: (tls) => {
      // eslint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
      thread.postMessage({ tls })
      Atomics.store(new Int32Array(gate), 0, 1)
      Atomics.notify(new Int32Array(gate), 0)
    },
    close: async () => void (await thread.terminate()),
  }
}
