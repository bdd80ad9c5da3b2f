import { setTimeout as delay } from 'node:timers/promises'
import type { ProviderCall, Script } from '../support/fault-provider.ts'
import {
  answering,
  completion,
  continuing,
  EVENT_STREAM,
  errorObject,
  FIRST,
  interrupted,
  ROLE,
  sound,
  status,
  STOP,
  TEXT,
  usageFrame,
} from './answers.ts'
import { ask } from './ask.ts'
import { ledgerTextOf, healthOf } from './ledger.ts'
import { family, type AnyFamily, type Trial } from './trial.ts'
import { openWorld, type World } from './world.ts'

/**
 * The situations of the public Failover Bench catalogue (methodology 0.1), put as tests of our own: a primary
 * model misbehaves, the caller lists another model in `failover`, and both the rescue and the manners count.
 */

interface Scenario {
  /** The number of the situation in the catalogue. */
  readonly id: string
  readonly what: string
  readonly script: Script
  readonly expected: string
}

/** Short enough that silence is over soon, and far above what an answer takes on a busy machine. */
const TIMEOUTS = { headers_ms: 4_000, first_delta_ms: 4_000, idle_ms: 4_000, stream_ms: 60_000 }

const RESCUED =
  '200 stop "Hello from the other." | beta 9+6 (failover), receipt | primary asked once'
/** Whoever waits for such a provider to the end has not noticed that it is silent. */
const LONG_SILENCE_MS = 30_000

const IN_PLACE = '200 stop "Hello from the first." | alpha 7+5, receipt | primary asked once'
const CUT = '200 "Hello " then bad_gateway | alpha 19+2, no receipt | primary asked once'

/** Does one thing the first time and answers well afterwards. */
const once =
  (script: Script): Script =>
  (call: ProviderCall) =>
    call.number === 1 ? script(call) : sound(call)

const SCENARIOS: readonly Scenario[] = [
  {
    id: 'S01',
    what: 'asks for two seconds of patience, once',
    script: once(status(429, { 'retry-after': '2' })),
    expected: RESCUED,
  },
  {
    id: 'S02',
    what: 'is rate limited and never says for how long',
    script: status(429),
    expected: RESCUED,
  },
  { id: 'S03', what: 'fails once with 500', script: once(status(500)), expected: RESCUED },
  { id: 'S04', what: 'is overloaded for good', script: status(503), expected: RESCUED },
  {
    id: 'S05',
    what: 'resets the first connection',
    script: once(({ wire }) => wire.reset()),
    expected: RESCUED,
  },
  { id: 'S06', what: 'never answers', script: () => {}, expected: RESCUED },
  {
    id: 'S07',
    what: 'sends headers and takes very long for the first token',
    script: async (call) => {
      call.wire.head(200, EVENT_STREAM)
      await delay(LONG_SILENCE_MS)
      call.wire.send(ROLE + TEXT + STOP)
      call.wire.end()
    },
    expected: RESCUED,
  },
  {
    id: 'S08',
    what: 'cuts its stream in the middle',
    script: interrupted(({ wire }) => wire.reset()),
    expected: CUT,
  },
  {
    id: 'S09',
    what: 'falls silent in the middle',
    script: interrupted(() => {}),
    expected: CUT.replace('bad_gateway', 'upstream_timeout'),
  },
  {
    id: 'S10',
    what: 'sends an event that is no JSON',
    script: continuing(`data: {"choices"\n\n${STOP}`),
    expected: CUT,
  },
  {
    id: 'S11',
    what: 'ends a whole stream without its sentinel',
    script: answering(ROLE + TEXT + STOP + usageFrame(), JSON.stringify(completion())),
    expected: IN_PLACE,
  },
  {
    id: 'S12',
    what: 'has too small a context window',
    script: status(400, {}, JSON.stringify(errorObject('context_length_exceeded'))),
    expected: RESCUED,
  },
  {
    id: 'S13',
    what: 'refuses the content',
    script: status(400, {}, JSON.stringify(errorObject('content_policy_violation'))),
    expected: '400 content_policy_violation | no row | primary asked once',
  },
  {
    id: 'S14',
    what: 'cuts its stream, and the other would refuse to continue a begun answer',
    script: interrupted(({ wire }) => wire.close()),
    expected: CUT,
  },
  { id: 'S16', what: 'is down, which must not be billed', script: status(503), expected: RESCUED },
]

function modelOf(id: string): string {
  return `bench-${id.toLowerCase()}`
}

const FALLBACK = 'bench-fallback'

function trialOf({ id, what, expected }: Scenario): Trial<World> {
  return {
    name: `${id}: the primary ${what}`,
    expected,
    run: async (world) => {
      const customer = await world.newCustomer()
      const model = modelOf(id)
      const heard = await ask(world, customer, {
        model,
        stream: true,
        more: { failover: [FALLBACK] },
      })
      const calls = world.provider.calls(model).length
      const after = await ask(world, customer, { model: FALLBACK, stream: true })
      const ledger = (await ledgerTextOf(world, customer)).split(' and ')
      const words = [
        heard.words,
        // The newest row is that of the request that shows that the router lives.
        ledger.slice(1).join(' and ') || 'no row',
        `primary asked ${calls === 1 ? 'once' : `${calls} times`}`,
      ].join(' | ')
      const late = heard.milliseconds > LONG_SILENCE_MS ? `, after ${heard.milliseconds} ms` : ''
      return `${words}${late}${after.words.startsWith('200 stop') ? '' : `, then ${after.words}`}`
    },
  }
}

/** How long the flapping primary is down, and how long its rests are. */
const DOWN_MS = 2_500
const COOLDOWN_MS = 1_000
const BREAKER_ERRORS = 5
const LATEST_MS = 40_000

function flapping(): Script {
  let since: number | undefined
  let refused = 0
  return (call) => {
    since ??= performance.now()
    // On a busy machine it stays down until its circuit has opened.
    const down = performance.now() - since < DOWN_MS || refused < BREAKER_ERRORS
    if (!down) return sound(call)
    refused += 1
    return status(503)(call)
  }
}

const FLAP_MODEL = 'bench-s15'

const FLAP: Trial<World> = {
  name: 'S15: the primary goes down and comes back',
  expected: 'all served, few probes while down, back at the primary, closed',
  run: async (world) => {
    const customer = await world.newCustomer()
    const request = { model: FLAP_MODEL, stream: true, more: { failover: [FALLBACK] } }
    const served: string[] = []
    const begun = performance.now()
    const passed = () => performance.now() - begun
    const isBack = () => served.at(-1) === FIRST || passed() > LATEST_MS
    while (passed() < DOWN_MS + 2 * COOLDOWN_MS + 1_000 || !isBack()) {
      const { words, text } = await ask(world, customer, request)
      served.push(words.startsWith('200 stop') ? text : words)
      await delay(50)
    }
    const failures = served.filter((text) => !text.startsWith('Hello from the'))
    const calls = world.provider.calls(FLAP_MODEL).length
    const refused = calls - served.filter((text) => text === FIRST).length
    return [
      failures.length === 0 ? 'all served' : failures.join(', '),
      // Five errors open the circuit, then one probe for each rest.
      refused <= 5 + DOWN_MS / COOLDOWN_MS + 1
        ? 'few probes while down'
        : `${refused} tries while down`,
      served.at(-1) === FIRST ? 'back at the primary' : 'still at the other',
      await healthOf(world, `alpha/${FLAP_MODEL}`),
    ].join(', ')
  },
}

function failoverFamily(name: string, pinned: boolean): AnyFamily {
  return family({
    name,
    trials: [...SCENARIOS.map(trialOf), FLAP],
    atATime: 8,
    open: () => {
      const primaries = SCENARIOS.map(({ id, script }) => {
        return { model: modelOf(id), at: 'alpha' as const, script }
      })
      const flap = { model: FLAP_MODEL, at: 'alpha' as const, script: flapping() }
      return openWorld([...primaries, flap, { model: FALLBACK, at: 'beta' }], {
        service: {
          breaker: { errors: BREAKER_ERRORS, window_ms: 30_000, cooldown_ms: COOLDOWN_MS },
        },
        timeouts: TIMEOUTS,
        pinned,
      })
    },
    close: (world) => world.close(),
  })
}

export const FAILOVER_FAMILY = failoverFamily('failover scenarios', false)

/** The same scenarios where the first provider is reached through the daemon. */
export const PINNED_FAILOVER_FAMILY = failoverFamily('failover scenarios over pinned egress', true)
