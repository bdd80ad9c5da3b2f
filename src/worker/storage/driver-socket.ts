import type { Socket } from '@cloudflare/workers-types'

type Listener = (value?: unknown) => void

/** What the PostgreSQL driver uses of a Node socket. */
export interface DriverSocket {
  readonly readyState: 'open' | 'closed'
  on(event: string, listener: Listener): void
  once(event: string, listener: Listener): void
  removeListener(event: string, listener: Listener): void
  removeAllListeners(): void
  write(chunk: Uint8Array, done?: () => void): boolean
  end(chunk?: Uint8Array): void
  destroy(): void
}

/**
 * Shows an open socket of the runtime to the driver: `data` with a `Buffer` for each chunk, `error`, and at the end
 * `close` once.
 */
export function driverSocket(socket: Socket): DriverSocket {
  const listeners = new Map<string, Set<Listener>>()
  const writer = socket.writable.getWriter()
  let readyState: DriverSocket['readyState'] = 'open'

  const emit = (event: string, value?: unknown) => {
    for (const listener of [...(listeners.get(event) ?? [])]) listener(value)
  }
  const on = (event: string, listener: Listener) => {
    const known = listeners.get(event) ?? new Set()
    listeners.set(event, known.add(listener))
  }
  const removeListener = (event: string, listener: Listener) => {
    listeners.get(event)?.delete(listener)
  }
  const closed = () => {
    if (readyState === 'closed') return
    readyState = 'closed'
    emit('close')
  }
  const failed = (error: unknown) => {
    if (readyState === 'closed') return
    emit('error', error)
    closed()
  }
  const close = () => void socket.close().then(closed, failed)

  async function read() {
    const reader = socket.readable.getReader()
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      emit('data', Buffer.from(value))
    }
  }
  // The driver adds its listeners as soon as it has the socket; the server speaks only when spoken to.
  void read().then(close, failed)

  return {
    get readyState() {
      return readyState
    },
    on,
    once(event, listener) {
      const first = (value?: unknown) => {
        removeListener(event, first)
        listener(value)
      }
      on(event, first)
    },
    removeListener,
    removeAllListeners: () => listeners.clear(),
    write(chunk, done) {
      writer.write(chunk).then(() => done?.(), failed)
      return true
    },
    end(chunk) {
      if (chunk === undefined) close()
      else void writer.write(chunk).then(close, failed)
    },
    destroy: close,
  }
}
