import type { Socket } from 'node:net'
import type { TakeBytes } from '../outbound/taken-reads.ts'

/**
 * Opens a connection whose bytes go directly to a reader that waits for them (`readable`, then `read`). Node's own way
 * puts each read into a stream and reports that later, which costs a tenth of what the daemon does for a frame. What
 * the reader does not take at once goes into Node's stream, and is read from there as from any socket.
 * @param connect opens it; what is read goes to the function that it is given
 * @throws unknown what `connect` throws
 */
export async function connectDirect<Opened extends Socket>(
  connect: (take: TakeBytes) => Promise<Opened>,
): Promise<Opened> {
  let fresh: Buffer | null = null
  const socket = await connect((source, read) => {
    const bytes = Buffer.from(read)
    // What came earlier is read earlier.
    if (source.readableLength > 0) return source.push(bytes)
    fresh = bytes
    source.emit('readable')
    if (fresh === null) return true
    fresh = null
    return source.push(bytes)
  })
  const readStream = socket.read.bind(socket)
  socket.read = (size?: number) => {
    if (size !== undefined || socket.readableLength > 0) return readStream(size)
    const bytes = fresh
    fresh = null
    return bytes
  }
  return socket
}
