import type { ServerResponse } from 'node:http'
import type { AnswerBody } from './answer-body.ts'
import { gather } from './gather.ts'

/** Relays a small answer whose head is written but not sent. One that is cut off destroys the response, after what came. */
export function relayAtOnce(answer: AnswerBody, response: ServerResponse): void {
  response.once('close', () => answer.destroy())
  // A response that is closed already reports that by itself.
  response.on('error', () => {})
  gather(answer, {
    whole: (body) => response.end(body),
    brokenOff: (part) => {
      if (response.destroyed) return
      response.flushHeaders()
      response.write(part, () => response.destroy())
    },
  })
}
