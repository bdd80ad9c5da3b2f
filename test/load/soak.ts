import { setTimeout as delay } from 'node:timers/promises'
import { becomesTrue, type Stack } from '../support/stack.ts'
import { checkLedger, type Ledger, type Outcome } from './ledger-check.ts'
import { openLoadWorld, OPENING_EUR, type LoadWorld } from './load-world.ts'
import { medianMib, peakOf, type Sample } from './process-watch.ts'
import { act, type Done } from './soak-client.ts'
import { SOAK_ALONE, SOAK_SCRIPTS, SOAK_TIMEOUTS } from './soak-kinds.ts'

export interface SoakPlan {
  readonly minutes: number
  readonly clients: number
  readonly customers: number
  readonly seed: number
}

export interface SoakReport {
  readonly faults: readonly string[]
  /** How often each thing was done, with its outcome. */
  readonly done: ReadonlyMap<string, number>
  readonly ledger: Ledger
  readonly processes: ReadonlyMap<string, readonly Sample[]>
  readonly counted: readonly string[]
}

const PAUSE_MS = 50
/** The daemon stands still for a second, again and again. */
const FREEZE_EVERY_MS = 20_000
const FREEZE_MS = 1_000
const RELOAD_EVERY_MS = 45_000
/** Shorter runs never leave the time in which heaps grow to their size. */
const SETTLED_AFTER_MINUTES = 8
const MAX_GROWTH = 1.15
const SLACK_MIB = 24
const MAX_MIB = 768

/**
 * A mixed load over a long time, with providers that fail in every way, clients that leave, a daemon that freezes
 * and configurations that are read again. In the end no request may be open, the ledger must balance and memory
 * must be what it was in the middle.
 */
export async function soak(plan: SoakPlan): Promise<SoakReport> {
  const world = await openLoadWorld({
    scripts: SOAK_SCRIPTS,
    alone: SOAK_ALONE,
    timeouts: SOAK_TIMEOUTS,
    customers: plan.customers,
  })
  try {
    return await run(world, plan)
  } finally {
    await world.close()
  }
}

async function run(world: LoadWorld, plan: SoakPlan): Promise<SoakReport> {
  const { stack, customers } = world
  const done = new Map<string, number>()
  const outcomes: Outcome[] = []
  const watch = world.watch()
  const endAt = performance.now() + plan.minutes * 60_000
  const note = ({ what, outcome }: Done) => {
    done.set(what, (done.get(what) ?? 0) + 1)
    if (outcome !== undefined) outcomes.push(outcome)
  }
  const client = async (number: number) => {
    const chance = chanceFrom(plan.seed * 1_000 + number)
    while (performance.now() < endAt) {
      const customer = customers[Math.floor(chance() * customers.length)]
      if (customer !== undefined) note(await act(stack, customer, chance))
      await delay(PAUSE_MS * chance())
    }
  }
  const troubles = trouble(stack)
  await Promise.all(Array.from({ length: plan.clients }, (_, number) => client(number)))
  await troubles.stop()
  const processes = watch.stop()
  await becomesTrue(async () => (await world.openRequests()) === 0)
  const working = await world.openRequests()
  const counted = await world.faultsCounted()
  const ledger = await checkLedger(world, customers, OPENING_EUR, outcomes)
  const faults = [
    ...(working === 0 ? [] : [`${working} requests are still open`]),
    ...[...done.keys()].filter((what) => what.endsWith(': 500')),
    ...[...done.keys()].filter((what) => what.startsWith('no answer')),
    ...memoryFaults(processes, plan.minutes),
    ...diedFaults(stack),
    ...ledger.faults,
  ]
  return { faults, done, ledger, processes, counted }
}

/** Freezes the daemon and has the configuration read again, from time to time. */
function trouble(stack: Stack): { stop(): Promise<void> } {
  const { enclave } = stack.local.pids
  const thaw = () => process.kill(enclave, 'SIGCONT')
  const freezing = setInterval(() => {
    process.kill(enclave, 'SIGSTOP')
    setTimeout(thaw, FREEZE_MS)
  }, FREEZE_EVERY_MS)
  const reloading = setInterval(() => stack.signal('SIGUSR2'), RELOAD_EVERY_MS)
  return {
    stop: async () => {
      clearInterval(freezing)
      clearInterval(reloading)
      await delay(FREEZE_MS)
      thaw()
    },
  }
}

function memoryFaults(processes: SoakReport['processes'], minutes: number): string[] {
  const seconds = minutes * 60
  return [...processes].flatMap(([name, samples]) => {
    const peak = peakOf(samples, 'rssMib')
    const middle = medianMib(samples, 0.4 * seconds, 0.6 * seconds)
    const last = medianMib(samples, 0.8 * seconds, seconds)
    const grown = minutes >= SETTLED_AFTER_MINUTES && last > middle * MAX_GROWTH + SLACK_MIB
    return [
      ...(peak > MAX_MIB ? [`${name} took ${peak} MiB`] : []),
      ...(grown ? [`${name} grew from ${middle} to ${last} MiB`] : []),
    ]
  })
}

function diedFaults(stack: Stack): string[] {
  const now = stack.localNow().pids
  return (['worker', 'enclave', 'standin'] as const)
    .filter((part) => now[part] !== stack.local.pids[part])
    .map((part) => `${part} has died`)
}

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function chanceFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
