import { ask } from './ask.ts'
import { ledgerTextOf, healthOf } from './ledger.ts'
import { outcomeWords, type Outcome, type ProviderCase } from './provider/case.ts'
import { CONNECTION_CASES } from './provider/connections.ts'
import { DIALECT_CASES } from './provider/dialects.ts'
import { END_CASES } from './provider/ends.ts'
import { ERROR_CASES } from './provider/errors.ts'
import { FRAMING_CASES } from './provider/framing.ts'
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

function variantsOf(cases: readonly ProviderCase[]): readonly Variant[] {
  return cases.flatMap((fault, index) =>
    MODES.flatMap((mode) =>
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
const SYNC_SECONDS = { 'x-service-timeout-seconds': '6' }

async function run(world: World, { fault, model, mode }: Variant): Promise<string> {
  const customer = await world.newCustomer()
  const stream = mode === 'stream'
  const heard = await ask(world, customer, {
    model,
    stream,
    ...(fault.more && { more: fault.more }),
    ...(stream ? {} : { headers: SYNC_SECONDS }),
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

/** The router drops a connection that it has no more use for at once, give or take a turn of its loop. */
async function letGo(calls: readonly { readonly wire: { readonly over: boolean } }[]) {
  const deadline = performance.now() + 2_000
  while (calls.some((call) => !call.wire.over) && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

function providerFamily(
  name: string,
  cases: readonly ProviderCase[],
  atATime: number,
  options: WorldOptions = {},
): AnyFamily {
  const variants = variantsOf(cases)
  return family({
    name,
    trials: variants.map(trialOf),
    atATime,
    open: () => openWorld(variants.flatMap(routesOf), options),
    close: (world) => world.close(),
  })
}

/** Megabytes take their time, and nothing here is about clocks. */
const PATIENT = { first_delta_ms: 20_000, sync_attempt_ms: 20_000, stream_headers_after_ms: 20_000 }

/** The same faults behind pinned egress, whose daemon reads and relays what the provider sends. */
export const PINNED_FAMILY = providerFamily(
  'provider faults over pinned egress',
  CASES.filter(({ script }) => script !== undefined),
  12,
  { pinned: true },
)

export const PROVIDER_FAMILIES: readonly AnyFamily[] = [
  providerFamily('provider faults', CASES, 12),
  providerFamily('large provider answers', LARGE_CASES, 1, {
    timeouts: { ...PATIENT, headers_ms: 20_000, stream_open_ms: 20_000 },
  }),
]
