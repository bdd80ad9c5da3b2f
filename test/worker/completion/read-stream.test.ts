import { describe, expect, test } from 'vitest'
import { fromUtf8, utf8, type Bytes } from '../../../src/protocol/bytes.ts'
import { ApiError } from '../../../src/worker/http/errors.ts'
import type { ClientEnd } from '../../../src/worker/completion/open-stream.ts'
import { readToCommit } from '../../../src/worker/completion/read-stream.ts'
import type { After } from '../../../src/worker/batching/deadline-timer.ts'
import { LinkUnavailable } from '../../../src/worker/link/link.ts'
import { AttemptClock } from '../../../src/worker/provider/attempt-clock.ts'
import { toAttemptFailure } from '../../../src/worker/provider/attempt-failure.ts'
import { Budget } from '../../../src/worker/routing/budget.ts'
import type { CarriedCall } from '../../../src/worker/routing/carried-calls.ts'
import { JoinWindow } from '../../../src/worker/stream/join-window.ts'
import { AnswerStream } from '../../../src/worker/stream/answer-stream.ts'
import { chatFormat } from '../../../src/worker/chat/encoder.ts'
import { carriedCall } from '../../support/carried-call.ts'
import { OPTIONS } from '../../support/golden-streams.ts'

const IDLE_MS = 60_000
const FIRST_DELTA_MS = 5_000
const chunk = (content: string) => `data: {"choices":[{"delta":{"content":"${content}"}}]}\n\n`
const FINISH = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
const LARGE = chunk('x'.repeat(300_000))

/** A stream for which there is no memory beyond what every stream may hold. */
function withoutMemory(...pieces: string[]) {
  const body = new ReadableStream<Bytes>({
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
  const { after } = manualTime()
  const rules = { idleMs: IDLE_MS, last, window: new JoinWindow(Date.now, 3_000), after }
  return { clock, committed: readToCommit(body, stream, clock, rules) }
}

function clientThat(receives: (events: Uint8Array) => void): ClientEnd {
  return {
    seesBytes: true,
    send: async (events) => receives(events),
    take: () => Promise.reject(new Error('not used')),
    seal: () => Promise.resolve(''),
    finish: () => Promise.resolve(),
  }
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
  const client = clientThat((events) => (sent += fromUtf8(events)))
  const source = await committed
  const { end } = await source.relayTo(client, new AbortController().signal, carriedCall())
  expect(end).toMatchObject({ kind: 'cut', failure: null, error: { code: 'service_unavailable' } })
  expect(sent).toContain('"content":"one"')
  expect(sent).toContain('"content":"two"')
  expect(clock.signal.aborted).toBe(true)
})

/** A time that passes only when told to, and the timers in it. */
function manualTime() {
  let now = 0
  const timers = new Set<{ readonly at: number; readonly passed: () => void }>()
  const after: After = (ms, passed) => {
    const timer = { at: now + ms, passed }
    timers.add(timer)
    return { stop: () => void timers.delete(timer) }
  }
  /** Lets timers fire, each at its time. */
  const pass = (ms: number) => {
    const end = now + ms
    for (;;) {
      const [next] = [...timers].filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at)
      if (next === undefined) break
      timers.delete(next)
      now = next.at
      next.passed()
    }
    now = end
  }
  return { now: () => now, after, pass }
}

/** A provider's stream of these events, read up to its commit point; it ends after them, or falls silent. */
async function committedStream(
  { now, after }: ReturnType<typeof manualTime>,
  events: readonly string[],
  rest: 'ends' | 'breaks' | 'is silent',
) {
  const clock = new AttemptClock(new Budget(now), now, after)
  const body = new ReadableStream<Bytes>({
    start: (controller) => {
      for (const event of events) controller.enqueue(utf8(event))
      if (rest === 'ends') controller.close()
      clock.signal.onAbort(() => controller.error(clock.signal.reason))
    },
    // After what was read.
    pull: (controller) => {
      if (rest === 'breaks') controller.error(new TypeError('network connection lost'))
    },
  })
  const format = chatFormat(false)
  const last = format.lastEvents(OPTIONS)
  const reading = { id: OPTIONS.id, includeReasoning: true }
  const stream = new AnswerStream(reading, format.chunkWriter(OPTIONS), last)
  clock.enter(FIRST_DELTA_MS)
  const rules = { idleMs: IDLE_MS, last, window: new JoinWindow(now, 3_000), after }
  return { clock, source: await readToCommit(body, stream, clock, rules) }
}

test('a wait between the commit point and the relay is not silence of the provider', async () => {
  const time = manualTime()
  const { clock, source } = await committedStream(time, [chunk('one'), FINISH], 'ends')
  time.pass(2 * IDLE_MS)
  expect(clock.signal.aborted).toBe(false)
  let sent = ''
  const { end } = await source.relayTo(
    clientThat((events) => (sent += fromUtf8(events))),
    new AbortController().signal,
    carriedCall(),
  )
  expect(end).toEqual({ kind: 'complete' })
  expect(sent).toContain('"content":"one"')
})

test('nor is the time that a client takes for the first events', async () => {
  const time = manualTime()
  const { clock, source } = await committedStream(time, [chunk('one'), FINISH], 'ends')
  const taken = Promise.withResolvers<void>()
  const slow: ClientEnd = { ...clientThat(() => {}), send: () => taken.promise }
  const relayed = source.relayTo(slow, new AbortController().signal, carriedCall())
  time.pass(2 * IDLE_MS)
  expect(clock.signal.aborted).toBe(false)
  taken.resolve()
  expect((await relayed).end).toEqual({ kind: 'complete' })
})

test('a provider that falls silent in the relay is given up after the idle time, not before', async () => {
  const time = manualTime()
  const { clock, source } = await committedStream(time, [chunk('one')], 'is silent')
  void source.relayTo(
    clientThat(() => {}),
    new AbortController().signal,
    carriedCall(),
  )
  // The first events are taken, and the provider is waited for.
  await new Promise((done) => setImmediate(done))
  time.pass(IDLE_MS - 1)
  expect(clock.signal.aborted).toBe(false)
  time.pass(1)
  expect(clock.signal.aborted).toBe(true)
})

describe('a stream of an attested provider that is read here and breaks off in the middle', () => {
  const error = new LinkUnavailable('the enclave daemon cannot be reached')

  async function cut(rest: 'breaks' | 'is silent', carried: CarriedCall) {
    const time = manualTime()
    const { source } = await committedStream(time, [chunk('one')], rest)
    const relayed = source.relayTo(
      clientThat(() => {}),
      new AbortController().signal,
      carried,
    )
    await new Promise((done) => setImmediate(done))
    time.pass(IDLE_MS)
    return (await relayed).end
  }

  test.each([
    ['breaks', 'unavailable', 'bad_gateway', 'The provider broke off its answer.'],
    [
      'is silent',
      'timeout',
      'upstream_timeout',
      'The provider took too long in the middle of its answer.',
    ],
  ] as const)('is its failure where the daemon lives (%s)', async (rest, kind, code, message) => {
    expect(await cut(rest, carriedCall())).toMatchObject({
      kind: 'cut',
      failure: { kind },
      error: { code, message },
    })
  })

  test.each(['breaks', 'is silent'] as const)(
    'is none where the daemon was lost (%s)',
    async (rest) => {
      expect(
        await cut(
          rest,
          carriedCall(async () => ({ error, failure: undefined })),
        ),
      ).toMatchObject({
        kind: 'cut',
        failure: null,
        error: {
          code: 'service_unavailable',
          message: 'The enclave that signs receipts cannot be reached.',
        },
      })
    },
  )

  test('is one where the daemon was lost and its route is to blame for that', async () => {
    const failure = { kind: 'unavailable' } as const
    expect(
      await cut(
        'breaks',
        carriedCall(async () => ({ error, failure })),
      ),
    ).toMatchObject({
      kind: 'cut',
      failure,
      error: { code: 'service_unavailable' },
    })
  })
})

/** A relay under a load for which events wait for up to 100 ms; the provider's events come one by one. */
async function joinedRelay() {
  const time = manualTime()
  let provider!: ReadableStreamDefaultController<Bytes>
  const body = new ReadableStream<Bytes>({ start: (controller) => void (provider = controller) })
  const format = chatFormat(false)
  const last = format.lastEvents(OPTIONS)
  const reading = { id: OPTIONS.id, includeReasoning: true }
  const stream = new AnswerStream(reading, format.chunkWriter(OPTIONS), last)
  const clock = new AttemptClock(new Budget(time.now), time.now, time.after)
  const window = new JoinWindow(time.now, 10)
  provider.enqueue(utf8(chunk('one')))
  const source = await readToCommit(body, stream, clock, {
    idleMs: IDLE_MS,
    last,
    window,
    after: time.after,
  })
  const writes: string[] = []
  const client = clientThat((events) => void writes.push(contentsOf(events)))
  const relayed = source.relayTo(client, new AbortController().signal, carriedCall())
  const settle = () => new Promise((done) => setImmediate(done))
  await settle()
  return {
    time,
    clock,
    writes,
    relayed,
    provider,
    receive: async (text: string) => {
      provider.enqueue(utf8(text))
      await settle()
    },
  }
}

const contentsOf = (events: Uint8Array): string =>
  [...fromUtf8(events).matchAll(/"content":"(\w+)"/g)].map(([, content]) => content).join(' ')

test('under load, events wait for those that follow within a window, the first output never', async () => {
  const { time, writes, receive } = await joinedRelay()
  expect(writes).toEqual(['one'])
  await receive(chunk('two'))
  await receive(chunk('three'))
  expect(writes).toEqual(['one'])
  time.pass(100)
  await receive(chunk('four'))
  expect(writes).toEqual(['one', 'two three four'])
})

test('events that wait are sent when nothing follows, and the provider may be silent for as long as ever', async () => {
  const { time, clock, writes, receive } = await joinedRelay()
  await receive(chunk('two'))
  time.pass(200)
  expect(writes).toEqual(['one', 'two'])
  time.pass(IDLE_MS - 201)
  expect(clock.signal.aborted).toBe(false)
  time.pass(1)
  expect(clock.signal.aborted).toBe(true)
})

test('what came before the finish reason does not wait after it', async () => {
  const { writes, relayed, receive, provider } = await joinedRelay()
  await receive(chunk('two'))
  await receive(FINISH)
  expect(writes).toEqual(['one', 'two'])
  provider.close()
  expect((await relayed).end).toEqual({ kind: 'complete' })
})

test('what waits is sent before a stream is cut by a provider that sends an error, and by one that breaks off', async () => {
  const failing = await joinedRelay()
  await failing.receive(chunk('two'))
  await failing.receive('data: {"error":{"message":"overloaded"}}\n\n')
  expect((await failing.relayed).end).toMatchObject({ kind: 'cut', error: { code: 'bad_gateway' } })
  expect(failing.writes).toEqual(['one', 'two'])
  const breaking = await joinedRelay()
  await breaking.receive(chunk('two'))
  breaking.provider.error(new Error('connection reset'))
  expect((await breaking.relayed).end).toMatchObject({
    kind: 'cut',
    error: { code: 'bad_gateway' },
  })
  expect(breaking.writes).toEqual(['one', 'two'])
})
