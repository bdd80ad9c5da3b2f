import { ask } from './ask.ts'
import { openCrowdedWorld } from './crowd.ts'
import { ledgerTextOf, healthOf } from './ledger.ts'
import { outcomeWords, type Outcome, type ProviderCase } from './provider/case.ts'
import { CONNECTION_CASES } from './provider/connections.ts'
import { DIALECT_CASES } from './provider/dialects.ts'
import { END_CASES } from './provider/ends.ts'
import { ERROR_CASES } from './provider/errors.ts'
import { FRAMING_CASES } from './provider/framing.ts'
import { JOINED_CASES } from './provider/joined.ts'
import { LARGE_CASES } from './provider/large.ts'
import { RATE_LIMIT_CASES } from './provider/rate-limits.ts'
import { family, type AnyFamily, type Trial } from './trial.ts'
import { openWorld, type World, type WorldOptions, type WorldRoute } from './world.ts'

export const CASES: readonly ProviderCase[] = [
  ...CONNECTION_CASES,
  ...END_CASES,
  ...ERROR_CASES,
  ...RATE_LIMIT_CASES,
  ...FRAMING_CASES,
  ...DIALECT_CASES,
]

const MODES = ['stream', 'whole'] as const
const SETTINGS = ['alone', 'paired'] as const

/** One case in one mode and setting; it has a model, and so routes and health, of its own. */
interface Variant {
  readonly fault: ProviderCase
  readonly model: string
  readonly mode: (typeof MODES)[number]
  readonly setting: (typeof SETTINGS)[number]
  readonly expected: Outcome
}

function variantsOf(
  cases: readonly ProviderCase[],
  modes: readonly Variant['mode'][],
): readonly Variant[] {
  return cases.flatMap((fault, index) =>
    modes.flatMap((mode) =>
      SETTINGS.flatMap((setting) => {
        const expected = fault[mode]?.[setting]
        const model = `m${index}-${mode}-${setting}`
        return expected ? [{ fault, model, mode, setting, expected }] : []
      }),
    ),
  )
}

function routesOf({ fault, model, setting }: Variant): WorldRoute[] {
  const tested: WorldRoute = fault.script
    ? { model, at: 'alpha', script: fault.script }
    : { model, at: 'closed' }
  return setting === 'paired' ? [tested, { model, at: 'beta' }] : [tested]
}

function trialOf(variant: Variant): Trial<World> {
  const { fault, mode, setting, expected } = variant
  const numbers = (fault.failures ?? []).map((number) => String(number).padStart(2, '0'))
  const prefix = numbers.length > 0 ? `failure ${numbers.join(', ')}: ` : ''
  const beside = setting === 'paired' ? ', with another route' : ''
  return {
    name: `${prefix}${fault.name} (${mode}${beside})`,
    expected: outcomeWords(expected),
    run: (world) => run(world, variant),
    long: fault.long === true || isLong(variant),
  }
}

/** What is about the form of an answer alone; the shortened form looks at it in streams. */
const ABOUT_FORM: ReadonlySet<ProviderCase> = new Set([
  ...RATE_LIMIT_CASES,
  ...FRAMING_CASES,
  ...DIALECT_CASES,
])

/** The shortened form has each fault as a stream alone, and as a whole answer beside another route. */
function isLong({ fault, mode, setting }: Variant): boolean {
  if (mode === 'stream') return setting === 'paired'
  return setting === 'alone' || ABOUT_FORM.has(fault)
}

/** Long enough for `sync_attempt_ms` to let another route have its turn. */
const SYNC_SECONDS = { 'x-service-timeout-seconds': '10' }

async function run(world: World, { fault, model, mode }: Variant): Promise<string> {
  const customer = await world.newCustomer()
  const stream = mode === 'stream'
  const heard = await ask(world, customer, {
    model,
    stream,
    ...(fault.more && { more: fault.more }),
    ...(fault.timed === true && !stream && { headers: SYNC_SECONDS }),
  })
  const at = fault.script ? 'alpha' : 'closed'
  const calls = world.provider.calls(model).filter((call) => call.provider === at)
  const words = outcomeWords({
    client: heard.words,
    ledger: await ledgerTextOf(world, customer, heard),
    health: await healthOf(world, `${at}/${model}`),
    calls: calls.length,
  })
  await letGo(calls)
  const held = calls.filter((call) => !call.wire.over).length
  return held === 0 ? words : `${words}, but ${held} still held`
}

/** The router drops a connection that it has no more use for at once; on a busy machine that takes a moment. */
async function letGo(calls: readonly { readonly wire: { readonly over: boolean } }[]) {
  const deadline = performance.now() + 15_000
  while (calls.some((call) => !call.wire.over) && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** No clock of the router's ends any of these, however busy the machine is: most faults have nothing to do with time. */
const PATIENT = {
  headers_ms: 60_000,
  first_delta_ms: 60_000,
  idle_ms: 60_000,
  stream_headers_after_ms: 60_000,
  stream_open_ms: 120_000,
  stream_ms: 120_000,
  sync_attempt_ms: 60_000,
}

/** A slow answer comes whole within one attempt, and silence leaves time for another. */
const TIMED = { sync_attempt_ms: 5_000 }

/** Silence takes its time, and streams beside the trials end by themselves. */
const CROWDED = { ...PATIENT, idle_ms: 5_000 }

interface Selection {
  readonly cases: readonly ProviderCase[]
  readonly timeouts: NonNullable<WorldOptions['timeouts']>
  readonly atATime?: number
  readonly modes?: readonly Variant['mode'][]
  /** Who calls the provider: the worker, or the daemon, to an attested one or without attestation. */
  readonly calls?: 'worker' | 'pinned' | 'carried'
  readonly declared?: boolean
  /** Whether so many streams run beside the trials that the router joins their chunks. */
  readonly crowded?: boolean
}

function seenByDaemon(fault: ProviderCase): ProviderCase {
  const { overDaemon } = fault
  return overDaemon === undefined ? fault : { ...fault, stream: overDaemon, whole: overDaemon }
}

function providerFamily(
  name: string,
  {
    cases,
    modes = MODES,
    timeouts,
    atATime = 12,
    crowded = false,
    calls = 'worker',
    ...more
  }: Selection,
): AnyFamily {
  const variants = variantsOf(calls === 'worker' ? cases : cases.map(seenByDaemon), modes)
  const routes = variants.flatMap(routesOf)
  const options = { timeouts, ...more, ...(calls !== 'carried' && { pinned: calls === 'pinned' }) }
  return family({
    name,
    trials: variants.map(trialOf),
    atATime,
    open: () => (crowded ? openCrowdedWorld(routes, options) : openWorld(routes, options)),
    close: (world) => world.close(),
  })
}

const TIMED_CASES = CASES.filter(({ timed }) => timed === true)
const OTHER_CASES = CASES.filter(({ timed }) => timed !== true)
const answered = ({ script }: ProviderCase) => script !== undefined

/** Faults while chunks are joined; short clocks end none but silence. */
const crowdedFamily = (name: string, calls: Selection['calls'] & string) =>
  providerFamily(name, { cases: JOINED_CASES, timeouts: CROWDED, calls, crowded: true })

/**
 * Whole answers that the daemon sends as messages. After one that it cannot send so, the worker calls that provider over HTTP for a
 * minute: those are in the other families.
 */
const messageFamily = (name: string, timed: boolean) =>
  providerFamily(name, {
    cases: (timed ? TIMED_CASES : OTHER_CASES).filter(
      (one) => answered(one) && one.undeclared !== true,
    ),
    modes: ['whole'],
    timeouts: timed ? TIMED : PATIENT,
    calls: 'pinned',
    declared: true,
  })

/** The same faults behind pinned egress, whose daemon reads and relays what the provider sends. */
export const PINNED_FAMILIES: readonly AnyFamily[] = [
  providerFamily('provider faults over pinned egress', {
    cases: OTHER_CASES.filter(answered),
    timeouts: PATIENT,
    calls: 'pinned',
  }),
  providerFamily('provider faults over pinned egress that a clock ends', {
    cases: TIMED_CASES.filter(answered),
    timeouts: TIMED,
    calls: 'pinned',
  }),
  providerFamily('provider faults in calls that the daemon carries without attestation', {
    cases: OTHER_CASES.filter(answered),
    timeouts: PATIENT,
    calls: 'carried',
  }),
  messageFamily('provider faults in whole answers as messages', false),
  messageFamily('provider faults in whole answers as messages that a clock ends', true),
  crowdedFamily('provider faults among many streams over pinned egress', 'pinned'),
]

export const PROVIDER_FAMILIES: readonly AnyFamily[] = [
  providerFamily('provider faults', { cases: OTHER_CASES, timeouts: PATIENT }),
  providerFamily('provider faults that a clock ends', { cases: TIMED_CASES, timeouts: TIMED }),
  crowdedFamily('provider faults among many streams', 'worker'),
  providerFamily('large provider answers', {
    cases: LARGE_CASES,
    timeouts: PATIENT,
    atATime: 1,
  }),
]
