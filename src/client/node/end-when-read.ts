import type { TLSSocket } from 'node:tls'

/**
 * Makes a connection report its end only to a reader that asks for more, and a reset as any other failure. Undici 7
 * finishes an answer after which the connection closes as soon as the end or a reset is reported, and fails an assertion
 * while it holds back an answer that the application reads slowly. That would end the process, and whoever is on the
 * path can end or reset a connection.
 * @param socket is not at its end, and nothing reads it yet
 */
export function endWhenRead(socket: TLSSocket): TLSSocket {
  const push = socket.push.bind(socket)
  const read = socket.read.bind(socket)
  let isEnding = false
  socket.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (chunk !== null) return push(chunk, encoding)
    isEnding = true
    // A reader that is not held back asks for more now.
    socket.emit('readable')
    return false
  }
  socket.read = (size?: number): unknown => {
    const bytes: unknown = read(size)
    // With a size it is Node itself that reads.
    if (bytes !== null || size !== undefined || !isEnding) return bytes
    isEnding = false
    push(null)
    return read(0)
  }
  socket.prependListener('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNRESET') error.code = 'UND_ERR_SOCKET'
  })
  return socket
}
