import type { Socket } from 'node:net'
import type { TakeBytes } from '../outbound/taken-reads.ts'

/**
 * Opens a connection whose bytes go directly to a reader that waits for them (`readable`, then `read`). By default Node
 * pushes each read into a stream and reports it later, which costs a tenth of the daemon's work for a frame. Bytes that
 * the reader does not take at once go into Node's stream, and are read from there as from any socket.
 * @param connect opens the connection; it must pass the bytes that it reads to the given function
 * @throws unknown what `connect` throws
 */
export async function connectDirect<Opened extends Socket>(
  connect: (take: TakeBytes) => Promise<Opened>,
): Promise<Opened> {
  let fresh: Buffer | null = null
  const socket = await connect((source, read) => {
    const bytes = Buffer.from(read)
    // Keep the order: earlier bytes still wait in Node's stream.
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
