import type { Socket } from '@cloudflare/workers-types'

type Listener = (value?: unknown) => void

interface Listeners {
  on(event: string, listener: Listener): void
  once(event: string, listener: Listener): void
  removeListener(event: string, listener: Listener): void
  removeAllListeners(): void
}

/** The part of a Node socket that the PostgreSQL driver uses. */
export interface DriverSocket extends Listeners {
  readonly readyState: 'open' | 'closed'
  write(chunk: Uint8Array, done?: () => void): boolean
  end(chunk?: Uint8Array): void
  destroy(): void
}

/**
 * Adapts an open socket of the runtime to the driver's interface: it emits `data` with a `Buffer` for each chunk, `error`,
 * and finally `close` once.
 */
export function driverSocket(socket: Socket): DriverSocket {
  const { emit, ...listeners } = createListeners()
  const writer = socket.writable.getWriter()
  let readyState: DriverSocket['readyState'] = 'open'

  const closed = () => {
    if (readyState === 'closed') return
    readyState = 'closed'
    emit('close')
  }
  const failed = (reason: unknown) => {
    if (readyState === 'closed') return
    emit('error', reason)
    closed()
    void socket.close().catch(() => {})
  }
  const close = () => void socket.close().then(closed, failed)

  async function send(chunk: Uint8Array, done?: () => void) {
    try {
      await writer.write(chunk)
    } catch (error) {
      failed(error)
      return
    }
    done?.()
  }

  // No chunk can be missed: the driver adds its listeners as soon as it has the socket, and the server only answers
  // requests.
  void readAll(socket, (chunk) => emit('data', Buffer.from(chunk))).then(close, failed)

  return {
    ...listeners,
    get readyState() {
      return readyState
    },
    write(chunk, done) {
      void send(chunk, done)
      return true
    },
    end(chunk) {
      if (chunk === undefined) close()
      else void send(chunk, close)
    },
    destroy: close,
  }
}

async function readAll(
  { readable }: Socket,
  onChunk: (chunk: Uint8Array<ArrayBuffer>) => void,
): Promise<void> {
  const reader = readable.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    onChunk(value)
  }
}

function createListeners(): Listeners & { emit: (event: string, value?: unknown) => void } {
  const listeners = new Map<string, Set<Listener>>()
  const on = (event: string, listener: Listener) => {
    listeners.set(event, (listeners.get(event) ?? new Set()).add(listener))
  }
  const removeListener = (event: string, listener: Listener) => {
    listeners.get(event)?.delete(listener)
  }
  return {
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
    emit: (event, value) => {
      for (const listener of listeners.get(event) ?? []) listener(value)
    },
  }
}
