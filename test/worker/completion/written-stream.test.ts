import { describe, expect, it } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import type { StreamSpec, StreamRecord } from '../../../src/protocol/stream-record.ts'
import { chatFormat } from '../../../src/worker/chat/encoder.ts'
import { AnsweredChunks } from '../../../src/worker/completion/answered-chunks.ts'
import type { ClientEnd } from '../../../src/worker/completion/open-stream.ts'
import {
  WrittenStream,
  type WrittenStreamDeps,
} from '../../../src/worker/completion/written-stream.ts'
import { OwnSignal } from '../../../src/worker/calls/own-signal.ts'
import type { After } from '../../../src/worker/batching/deadline-timer.ts'
import { LinkUnavailable } from '../../../src/worker/link/link.ts'
import { AttemptClock } from '../../../src/worker/provider/attempt-clock.ts'
import { Budget } from '../../../src/worker/routing/budget.ts'
import type { CarriedCall } from '../../../src/worker/routing/carried-calls.ts'
import { carriedCall } from '../../support/carried-call.ts'
import { STREAM_SPEC } from '../../support/stream-spec.ts'
import { OPTIONS } from '../../support/golden-streams.ts'

const SPEC: StreamSpec = {
  ...STREAM_SPEC,
  head: { id: OPTIONS.id, created: OPTIONS.created, model: OPTIONS.model },
}

const RECORD: StreamRecord = {
  ending: { kind: 'complete' },
  finish_reason: 'stop',
  tail: { events: 0, blocks: 0, open: null, output: [] },
  counts: { prompt: 7, completion: 5, uncounted_text_bytes: 0 },
  provider_response_id: null,
  provider_sha256: 'a'.repeat(64),
  client_sha256: 'b'.repeat(64),
}

const LOST: StreamRecord = { ...RECORD, ending: { kind: 'lost' }, finish_reason: null }
const IDLE: StreamRecord = { ...LOST, ending: { kind: 'idle' } }

const EVENT = utf8('data: {"choices":[{"index":0,"delta":{"content":"one"}}]}\n\n')

type Body = 'ends' | 'breaks' | 'stands still'

const REST: Readonly<
  Record<Body, (controller: ReadableStreamDefaultController<Uint8Array>) => void>
> = {
  ends: (controller) => controller.close(),
  breaks: (controller) => controller.error(new TypeError('network connection lost')),
  'stands still': () => {},
}

/** A client's end that takes everything, until the attempt ends. */
function clientUntil(ended: AbortSignal): ClientEnd {
  const end = Promise.withResolvers<never>()
  end.promise.catch(() => {})
  ended.addEventListener('abort', () => end.reject(ended.reason))
  return {
    seesBytes: false,
    send: () => Promise.reject(new Error('not used')),
    take: async (_head, body) => {
      const reader = body.getReader()
      for (;;) {
        const { done } = await Promise.race([reader.read(), end.promise])
        if (done) return
      }
    },
    seal: () => Promise.reject(new Error('not used')),
    finish: () => Promise.resolve(),
  }
}

interface Given {
  readonly daemon: WrittenStreamDeps['link']
  readonly idleMs?: number
  readonly after?: After
  readonly carried?: CarriedCall
}

/** A stream whose body goes on like this after its first event. */
function open(body: Body, { daemon, idleMs = 60_000, after }: Given) {
  const bytes = new ReadableStream<Uint8Array>(
    { start: (controller) => controller.enqueue(EVENT), pull: REST[body] },
    { highWaterMark: 0 },
  )
  const clock = new AttemptClock(new Budget(Date.now), Date.now, after)
  const last = chatFormat(false).lastEvents(OPTIONS)
  const budget = new OwnSignal()
  const deps = { link: daemon, clock, budget, last }
  return {
    clock,
    stream: new WrittenStream({ ...SPEC, idle_ms: idleMs }, new AnsweredChunks(bytes), deps),
  }
}

/** How such a stream ends. */
async function endOf(body: Body, given: Given) {
  const { clock, stream } = open(body, given)
  await stream.reachCommit()
  const client = clientUntil(clock.signal.ofPlatform())
  const { carried = carriedCall() } = given
  return (await stream.relayTo(client, new AbortController().signal, carried)).end
}

const gone = () => Promise.reject(new LinkUnavailable('the enclave daemon cannot be reached'))
const alive = () => new Promise<never>(() => {})
const silent = { endStream: gone, streamRecord: gone, state: gone }
const knows = (record: StreamRecord) => ({
  daemon: { endStream: async () => record, streamRecord: gone, state: alive },
})

const DAEMON_LOST = {
  kind: 'cut',
  failure: null,
  error: {
    code: 'service_unavailable',
    message: 'The enclave that signs receipts cannot be reached.',
  },
}

describe('a stream whose daemon is lost is cut, and that is no failure of the route', () => {
  it.each(['breaks', 'ends'] as const)(
    'where its body %s and nobody knows its record',
    async (body) => {
      expect(await endOf(body, { daemon: silent })).toMatchObject(DAEMON_LOST)
    },
  )

  it('where its body breaks and the daemon is there again', async () => {
    expect(await endOf('breaks', knows(RECORD))).toMatchObject(DAEMON_LOST)
  })

  it('where its daemon stands still', async () => {
    const seen = await endOf('stands still', { daemon: silent, idleMs: 1 })
    expect(seen).toMatchObject(DAEMON_LOST)
  })
})

it('a stream whose route is to blame for the loss of its daemon is cut, and that is a failure of the route', async () => {
  const error = new LinkUnavailable('the enclave daemon broke off its answer')
  const failure = { kind: 'unavailable' } as const
  const carried = carriedCall(async () => ({ error, failure }))
  const seen = await endOf('breaks', { daemon: silent, carried })
  expect(seen).toMatchObject({ ...DAEMON_LOST, failure })
})

it('a stream that breaks before its first event fails for the loss of the daemon, not of its provider', async () => {
  const broken = new ReadableStream<Uint8Array>({ pull: REST.breaks }, { highWaterMark: 0 })
  const clock = new AttemptClock(new Budget(Date.now), Date.now)
  const last = chatFormat(false).lastEvents(OPTIONS)
  const deps = { link: silent, clock, budget: new OwnSignal(), last }
  const stream = new WrittenStream(SPEC, new AnsweredChunks(broken), deps)
  await expect(stream.reachCommit()).rejects.toThrow(
    new LinkUnavailable('the enclave daemon cannot say how a stream ended'),
  )
})

describe('a stream whose daemon knows how it ended', () => {
  it('is complete with its finish reason', async () => {
    expect(await endOf('ends', knows(RECORD))).toEqual({ kind: 'complete' })
  })

  it.each([
    ['broke off', LOST, 'unavailable', 'bad_gateway', 'The provider broke off its answer.'],
    [
      'fell silent',
      IDLE,
      'timeout',
      'upstream_timeout',
      'The provider took too long in the middle of its answer.',
    ],
  ] as const)(
    'is cut where its provider %s, and that is a failure of the route',
    async (_how, record, kind, code, message) => {
      expect(await endOf('ends', knows(record))).toMatchObject({
        kind: 'cut',
        failure: { kind },
        error: { code, message },
      })
    },
  )
})

it.each([
  [
    'text_too_long',
    'answer_too_long',
    'The answer has more than the 8 Mi characters of text that the router holds until its end in this format.',
  ],
  [
    'no_memory',
    'service_unavailable',
    'The router has no memory left for so large an event of the answer.',
  ],
] as const)(
  'a stream that a limit of the router ended (%s) is cut, and that is no failure of the route',
  async (reason, code, message) => {
    const record: StreamRecord = { ...LOST, ending: { kind: 'broken', reason } }
    expect(await endOf('ends', knows(record))).toMatchObject({
      kind: 'cut',
      failure: null,
      error: { code, message },
    })
  },
)

it('a wait between the first event and the relay is not silence of the provider', async () => {
  const timers = new Set<() => void>()
  const after: After = (_ms, passed) => {
    timers.add(passed)
    return { stop: () => void timers.delete(passed) }
  }
  const { clock, stream } = open('ends', { ...knows(RECORD), after })
  clock.enter(5_000)
  expect(timers.size).toBe(1)
  await stream.reachCommit()
  expect(timers.size).toBe(0)
})
