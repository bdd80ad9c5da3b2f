import type { OnReadOpts, Socket } from 'node:net'

/** Receives bytes that were read; the buffer is overwritten by the next read. Returns false to pause reading. */
export type TakeBytes = (socket: Socket, bytes: Uint8Array) => boolean

/** One read buffer for all connections whose reads bypass their stream: a new buffer for each read would cost more. */
const READ_BUFFER = new Uint8Array(64 * 1024)

/**
 * The socket option that passes reads to `take` instead of the socket's own stream; empty without `take`.
 * @param socket returns the socket that is being opened
 */
export function takenBy(
  take: TakeBytes | undefined,
  socket: () => Socket,
): { readonly onread?: OnReadOpts } {
  if (take === undefined) return {}
  const callback = (length: number, buffer: Uint8Array) =>
    take(socket(), buffer.subarray(0, length))
  return { onread: { buffer: READ_BUFFER, callback } }
}
