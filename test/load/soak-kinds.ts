import { setTimeout as delay } from 'node:timers/promises'
import {
  answering,
  chunk,
  completion,
  content,
  DONE,
  errorObject,
  event,
  EVENT_STREAM,
  healthy,
  JSON_TYPE,
  ROLE,
  STOP,
  usageFrame,
} from '../faults/answers.ts'
import type { ProviderCall, Script } from '../support/fault-provider.ts'

/** What a provider does to the requests of a soak, by the model that is asked for. */

const FRAMES = 10
const FRAME_MS = 100
const SOME = ROLE + content('Hello ')

async function frames({ wire }: ProviderCall, count: number, everyMs: number): Promise<void> {
  wire.head(200, EVENT_STREAM)
  wire.send(SOME)
  for (let frame = 0; frame < count && !wire.over; frame++) {
    await delay(everyMs)
    wire.send(content('and so on '))
  }
}

/** A stream that begins correctly and then continues like this. */
function beginning(rest: (call: ProviderCall) => void): Script {
  return async (call) => {
    if (!call.stream) return call.wire.reset()
    await frames(call, 2, FRAME_MS)
    rest(call)
  }
}

const end = ({ wire }: ProviderCall, last: string) => {
  wire.send(last)
  wire.end()
}

function status(code: number, headers: Readonly<Record<string, string>> = {}): Script {
  return ({ wire }) => {
    wire.head(code, { ...JSON_TYPE, ...headers })
    wire.send(JSON.stringify(errorObject()))
    wire.end()
  }
}

export const SOAK_SCRIPTS: Readonly<Record<string, Script>> = {
  sound: healthy,
  slow: async (call) => {
    if (!call.stream) return healthy(call)
    await frames(call, FRAMES, FRAME_MS)
    end(call, STOP + usageFrame() + DONE)
  },
  long: answering(
    ROLE + content('x'.repeat(1_000)).repeat(200) + STOP + usageFrame() + DONE,
    JSON.stringify(completion({ content: 'x'.repeat(200_000) })),
  ),
  'no-usage': answering(SOME + STOP + DONE, JSON.stringify(completion({}, { usage: null }))),
  reset: beginning(({ wire }) => wire.reset()),
  'error-event': beginning((call) => end(call, event(errorObject()))),
  'no-finish': beginning((call) => end(call, '')),
  garbage: beginning((call) => end(call, 'data: {"choices": [\n\n')),
  'bad-finish': beginning((call) => end(call, event(chunk({}, 'error')) + DONE)),
  failing: status(500),
  busy: status(429, { 'retry-after': '1' }),
  overloaded: status(503),
  refusing: status(400),
  closing: ({ wire }) => wire.close(),
  silent: () => {},
}

/** Those without a stand-in. */
export const SOAK_ALONE: readonly string[] = ['sound', 'slow', 'refusing', 'overloaded', 'reset']

export const SOAK_TIMEOUTS = {
  headers_ms: 1_500,
  first_delta_ms: 1_500,
  idle_ms: 5_000,
  sync_attempt_ms: 1_500,
  stream_open_ms: 10_000,
  stream_ms: 30_000,
  keep_alive_ms: 250,
}
