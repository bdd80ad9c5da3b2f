import type { ServerResponse } from 'node:http'
import type { AnswerBody } from './answer-body.ts'
import type { StreamMemory } from './event-memory.ts'
import { gather, type Begun } from './gather.ts'
import { relayStream } from './relay-stream.ts'

/**
 * Relays a small answer whose head is written but not sent, in one write. If the answer is cut off, this sends what was
 * received and then destroys the response. Where no memory is left to gather the answer, it is streamed.
 */
export function relayAtOnce(
  answer: AnswerBody,
  response: ServerResponse,
  memory: StreamMemory,
): void {
  response.once('close', () => answer.destroy())
  // Errors need no handling here: `close` follows each of them.
  response.on('error', () => {})
  const outcome = {
    whole: (body: Buffer) => response.end(body),
    brokenOff: (part: Buffer) => {
      if (response.destroyed) return
      response.flushHeaders()
      response.write(part, () => response.destroy())
    },
    tooMuch: ({ parts }: Begun) => {
      response.flushHeaders()
      relayStream(answer, response, undefined)
      for (const part of parts) if (!response.write(part)) answer.pause()
      memory.giveBack()
    },
  }
  gather(answer, outcome, memory)
}
