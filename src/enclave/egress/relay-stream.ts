import type { ServerResponse } from 'node:http'
import type { AnswerBody } from './answer-body.ts'
import type { ChunkJoiner, JoinedStream, RestingSource } from './chunk-joiner.ts'
import { headerText, type HeaderValues } from './headers.ts'

/** Whether an answer is a stream of events that may be joined: its chunks are read as they come, and mean the same joined. */
export function isEventStream(headers: HeaderValues): boolean {
  return headerText(headers, 'content-type')?.toLowerCase().startsWith('text/event-stream') === true
}

/** What joins the chunks of a stream of events, and what they are read from. */
export interface Joining {
  readonly joiner: ChunkJoiner
  readonly source: RestingSource
}

/**
 * Relays an answer, no faster than it is read. One that is cut off destroys the response, after what came of it.
 * @param joining for a stream of events
 */
export function relayStream(
  answer: AnswerBody,
  response: ServerResponse,
  joining: Joining | undefined,
): void {
  const send = (bytes: Buffer) => {
    if (!response.write(bytes)) answer.pause()
  }
  const chunks = joining?.joiner.join(send, undefined, joining.source) ?? unjoined(send)
  response.on('drain', () => answer.resume())
  response.once('close', () => {
    chunks.leave()
    answer.destroy()
  })
  // A response that is closed already reports that by itself.
  response.on('error', () => {})
  answer.on('data', (chunk) => chunks.push(chunk))
  answer.once('end', () => {
    chunks.end()
    response.end()
  })
  answer.once('close', () => {
    if (answer.readableEnded || response.destroyed) return
    chunks.end()
    response.write('', () => response.destroy())
  })
}

function unjoined(push: JoinedStream['push']): JoinedStream {
  return { push, end: () => {}, leave: () => {} }
}
