import { setTimeout as delay } from 'node:timers/promises'
import { sound } from '../faults/answers.ts'
import { becomesTrue } from '../support/stack.ts'
import { checkLedger, type Ledger, type Outcome } from './ledger-check.ts'
import { OPENING_EUR, openLoadWorld, type LoadWorld } from './load-world.ts'
import { cpuSpent, type Sample } from './process-watch.ts'
import { openAttackers, type Attackers, type Deeds } from './siege-attackers.ts'
import { ATTACKED_MODELS, ATTACKS } from './siege-attacks.ts'
import { openDecoy } from './siege-decoy.ts'
import { serve, type Service } from './siege-service.ts'

export interface SiegePlan {
  /** Of each of the times: quiet, with attackers of an unrelated server, under attack. */
  readonly seconds: number
  /** Names of attacks, made at once. */
  readonly attacks: readonly string[]
  /** Whether to measure what the attackers take of the machine, on a server that is no router. */
  readonly decoy: boolean
  /** How often the attack is made, on the same router: 1 unless given. Memory that grows each time is a leak. */
  readonly rounds?: number
  /** Old rows in the ledger of the customer of the last attack. */
  readonly ledgerRows?: number
  /** Members of the configuration beside service, providers and routes. */
  readonly more?: object
}

/** One time of a siege. */
export interface Phase {
  readonly service: Service
  /** CPU seconds per second of each process. */
  readonly cpu: ReadonlyMap<string, number>
  /** What the attackers got, by attack. */
  readonly deeds: Deeds
}

export interface SiegeReport {
  readonly quiet: Phase
  /** While the attackers attack an unrelated server on the same machine. */
  readonly decoy: Phase | undefined
  /** The last of the rounds. */
  readonly attacked: Phase
  /** Of the well-behaved customer: every row, balance and receipt. */
  readonly ledger: Ledger
  /** Wrong rows, lost receipts, 5xx, dead processes, memory kept. */
  readonly faults: readonly string[]
  /** What the router's metrics count of faults around it (`cmr_faults_total`). */
  readonly routerFaults: readonly string[]
  readonly processes: ReadonlyMap<string, readonly Sample[]>
  /** Resident memory of the worker before the attack and after each round, once all is over, MiB. */
  readonly workerMib: { readonly before: number; readonly after: readonly number[] }
}

/** The attacks of a whole siege: five hostile customers, strangers and a provider. */
export const SIEGE: readonly string[] = [
  'chats',
  'reads',
  'leaves',
  'large-bodies',
  'slow-bodies',
  'silence',
  'slow-strangers',
  'nonces',
  'false-keys',
  'provider',
]

/**
 * What the worker may keep of the attack, and for how long it may need to let go of the rest. V8 keeps some of its heap,
 * however long the attack (docs/faults.md).
 */
const KEPT_MIB = 320
const SETTLING_MS = 20_000

/** Attacks on the real stack, and beside them one well-behaved customer. */
export async function siege(plan: SiegePlan): Promise<SiegeReport> {
  const unknown = plan.attacks.filter((name) => !Object.hasOwn(ATTACKS, name))
  if (unknown.length > 0) throw new Error(`no such attack: ${unknown.join(', ')}`)
  const attackers = await openAttackers()
  try {
    const world = await openLoadWorld({
      scripts: { sound },
      alone: ['sound'],
      timeouts: {},
      customers: 1 + plan.attacks.length,
      elsewhere: { models: Object.values(ATTACKED_MODELS), port: attackers.providerPort },
      ...(plan.ledgerRows !== undefined && { ledgerRows: plan.ledgerRows }),
      ...(plan.more !== undefined && { more: plan.more }),
    })
    try {
      return await run(world, attackers, plan)
    } finally {
      await world.close()
    }
  } finally {
    attackers.close()
  }
}

async function run(
  world: LoadWorld,
  attackers: Attackers,
  { seconds, attacks, decoy, rounds = 1 }: SiegePlan,
): Promise<SiegeReport> {
  const { stack } = world
  const [good, ...bad] = world.customers
  if (good === undefined) throw new Error('no customers')
  const watch = world.watch({ attackers: attackers.pid, customer: process.pid })
  const outcomes: Outcome[] = []
  const keys = Object.fromEntries(attacks.map((name, index) => [name, bad[index]?.key ?? '']))
  await serve(stack, good, 1, outcomes)

  const phase = async (baseUrl?: string): Promise<Phase> => {
    const cpuWatch = world.watch({ attackers: attackers.pid, customer: process.pid })
    if (baseUrl !== undefined) attackers.attack(baseUrl, keys)
    // The attack is in full swing before anything is measured.
    if (baseUrl !== undefined) await delay(1_000)
    const begun = performance.now()
    const service = await serve(stack, good, seconds, outcomes)
    const took = (performance.now() - begun) / 1_000
    const cpu = new Map(
      [...cpuWatch.stop()].map(([name, samples]) => [name, cpuSpent(samples) / took]),
    )
    return { service, cpu, deeds: baseUrl === undefined ? {} : await attackers.stop() }
  }

  const quiet = await phase()
  const weighed = decoy ? await againstDecoy(phase) : undefined
  const before = workerMib(world)
  const round = async () => {
    const attacked = await phase(stack.local.base_url)
    return { attacked, mib: await settledMib(world, before + KEPT_MIB) }
  }
  let last = await round()
  const all = [last]
  while (all.length < rounds) {
    last = await round()
    all.push(last)
  }
  const { attacked } = last
  const after = all.map(({ mib }) => mib)
  const processes = watch.stop()
  const ledger = await checkLedger(world, [good], OPENING_EUR, outcomes)
  const faults = [
    ...ledger.faults,
    ...deadParts(world).map((part) => `${part} has died`),
    ...[quiet, ...all.map((one) => one.attacked)].flatMap(({ service }) => serverFaults(service)),
    ...(Math.max(...after) <= before + KEPT_MIB
      ? []
      : [`the worker had ${before} MiB before the attack and has ${after.join(', ')} MiB`]),
    ...((await world.openRequests()) === 0 ? [] : ['requests are still open']),
  ]
  return {
    quiet,
    decoy: weighed,
    attacked,
    ledger,
    faults,
    routerFaults: await world.faultsCounted(),
    processes,
    workerMib: { before, after },
  }
}

async function againstDecoy(phase: (baseUrl: string) => Promise<Phase>): Promise<Phase> {
  const decoy = await openDecoy()
  try {
    return await phase(decoy.baseUrl)
  } finally {
    decoy.close()
  }
}

/** Anything that failed by the router's fault: all but refusals for what the customer did. */
function serverFaults({ refused }: Service): string[] {
  return [...refused]
    .filter(([refusal]) => !refusal.startsWith('4'))
    .map(([refusal, count]) => `${count} times ${refusal}`)
}

function deadParts({ stack }: LoadWorld): readonly string[] {
  const { pids } = stack.localNow()
  return (['worker', 'enclave'] as const).filter((part) => pids[part] !== stack.local.pids[part])
}

/** The resident memory of the worker once requests are over, and it has had time to give back what is above a limit. */
async function settledMib(world: LoadWorld, limit: number): Promise<number> {
  await becomesTrue(async () => (await world.openRequests()) === 0)
  const settledAt = performance.now() + SETTLING_MS
  while (workerMib(world) > limit && performance.now() < settledAt) await delay(500)
  return workerMib(world)
}

/** The resident memory of the worker now; 0 on systems without /proc. */
function workerMib(world: LoadWorld): number {
  return world.watch().stop().get('worker')?.at(-1)?.rssMib ?? 0
}
