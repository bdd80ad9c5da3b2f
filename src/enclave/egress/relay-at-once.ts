import type { ServerResponse } from 'node:http'
import type { AnswerBody } from './answer-body.ts'
import { joined } from './gather.ts'

/** Relays a small answer whose head is written but not sent. One that is cut off destroys the response, after what came. */
export function relayAtOnce(answer: AnswerBody, response: ServerResponse): void {
  const parts: Buffer[] = []
  response.once('close', () => answer.destroy())
  // A response that is closed already reports that by itself.
  response.on('error', () => {})
  answer.on('data', (part) => parts.push(part))
  answer.once('end', () => response.end(joined(parts)))
  answer.once('close', () => {
    if (answer.readableEnded || response.destroyed) return
    response.flushHeaders()
    response.write(joined(parts), () => response.destroy())
  })
}
