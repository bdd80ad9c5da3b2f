import type { OnReadOpts, Socket } from 'node:net'

/** Takes what was read, which is overwritten by the next read; false: no more for now. */
export type TakeBytes = (socket: Socket, bytes: Uint8Array) => boolean

/** What was last read from a connection whose reads are not put into its stream: a buffer for each read would cost more. */
const READ_BUFFER = new Uint8Array(64 * 1024)

/**
 * The option of a socket whose reads go to `take` in place of its own stream; none without it.
 * @param socket the one that is being opened
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
