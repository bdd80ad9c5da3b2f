import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ChunkJoiner } from './chunk-joiner.ts'

/** Whether an answer is a stream of events that may be joined: its chunks are read as they come, and mean the same joined. */
export function isEventStream({ headers }: IncomingMessage): boolean {
  return headers['content-type']?.toLowerCase().startsWith('text/event-stream') === true
}

/**
 * Relays a stream of events, no faster than it is read. An answer that is cut off destroys the response, after what
 * came of it.
 */
export function relayEvents(
  answer: IncomingMessage,
  response: ServerResponse,
  joiner: ChunkJoiner,
): void {
  const events = joiner.join((bytes) => {
    if (!response.write(bytes)) answer.pause()
  })
  response.on('drain', () => answer.resume())
  response.once('close', () => {
    events.leave()
    answer.destroy()
  })
  // A response that is closed already reports that by itself.
  response.on('error', () => {})
  answer.on('data', (chunk: Buffer) => events.push(chunk))
  answer.once('end', () => {
    events.end()
    response.end()
  })
  answer.once('close', () => {
    if (answer.readableEnded || response.destroyed) return
    events.end()
    response.write('', () => response.destroy())
  })
}
