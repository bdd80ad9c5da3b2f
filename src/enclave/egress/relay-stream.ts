import type { ServerResponse } from 'node:http'
import type { AnswerBody } from './answer-body.ts'
import type { ChunkJoiner, JoinedStream, PausableSource } from './chunk-joiner.ts'
import { headerText, type HeaderValues } from './headers.ts'

/**
 * Whether an answer is an event stream, whose chunks may be joined: its reader parses events, so chunk boundaries have
 * no meaning.
 */
export function isEventStream(headers: HeaderValues): boolean {
  return headerText(headers, 'content-type')?.toLowerCase().startsWith('text/event-stream') === true
}

/** The joiner for the chunks of an event stream, and the source that they are read from. */
export interface Joining {
  readonly joiner: ChunkJoiner
  readonly source: PausableSource
}

/**
 * Relays an answer with back-pressure. If the answer is cut off, this sends what was received and then destroys the
 * response.
 * @param joining for an event stream
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
  // Errors need no handling here: `close` follows each of them.
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
