import { expect, test } from 'vitest'
import { fromUtf8, utf8 } from '../../../src/protocol/bytes.ts'
import { ApiError } from '../../../src/worker/http/errors.ts'
import type { ClientEnd } from '../../../src/worker/completion/open-stream.ts'
import { readToCommit } from '../../../src/worker/completion/read-stream.ts'
import { AttemptClock } from '../../../src/worker/provider/attempt-clock.ts'
import { toAttemptFailure } from '../../../src/worker/provider/attempt-failure.ts'
import { Budget } from '../../../src/worker/routing/budget.ts'
import { AnswerStream } from '../../../src/worker/stream/answer-stream.ts'
import { chatFormat } from '../../../src/worker/chat/encoder.ts'
import { OPTIONS } from '../../support/golden-streams.ts'

const IDLE_MS = 60_000
const chunk = (content: string) => `data: {"choices":[{"delta":{"content":"${content}"}}]}\n\n`
const LARGE = chunk('x'.repeat(300_000))

/** A stream for which there is no memory beyond what every stream may hold. */
function withoutMemory(...pieces: string[]) {
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      for (const piece of pieces) controller.enqueue(utf8(piece))
    },
  })
  const takeMemory = () => {
    throw new Error('no memory')
  }
  const format = chatFormat(false)
  const last = format.lastEvents(OPTIONS)
  const stream = new AnswerStream(
    { id: OPTIONS.id, includeReasoning: true, takeMemory },
    format.chunkWriter(OPTIONS),
    last,
  )
  const clock = new AttemptClock(new Budget(Date.now), Date.now)
  return { clock, committed: readToCommit(body, stream, clock, IDLE_MS, last) }
}

/** What `text` is in two reads, so that its first part must be held. */
const split = (text: string): string[] => [text.slice(0, -10), text.slice(-10)]

test('an event for which there is no memory is refused before the commit point, whatever the route', async () => {
  const { committed } = withoutMemory(...split(LARGE))
  const error: unknown = await committed.catch((cause: unknown) => toAttemptFailure(cause))
  expect(error).toBeInstanceOf(ApiError)
  expect(error).toMatchObject({ code: 'service_unavailable', details: { retryAfter: 5 } })
})

test('after the commit point it cuts the stream, after what was sound, and is no fault of the route', async () => {
  const [begun = '', rest = ''] = split(LARGE)
  const { committed, clock } = withoutMemory(chunk('one'), chunk('two') + begun, rest)
  let sent = ''
  const client: ClientEnd = {
    seesBytes: true,
    send: async (events) => void (sent += fromUtf8(events)),
    take: () => Promise.reject(new Error('not used')),
    seal: () => Promise.resolve(''),
    finish: () => Promise.resolve(),
  }
  const source = await committed
  const { end } = await source.relayTo(client, new AbortController().signal)
  expect(end).toMatchObject({ kind: 'cut', failure: null, error: { code: 'service_unavailable' } })
  expect(sent).toContain('"content":"one"')
  expect(sent).toContain('"content":"two"')
  expect(clock.signal.aborted).toBe(true)
})
