import { setTimeout as delay } from 'node:timers/promises'
import { sound } from '../faults/answers.ts'
import type { Customer } from '../faults/world.ts'
import { until } from '../support/stack.ts'
import { checkLedger, type Ledger, type Outcome } from './ledger-check.ts'
import { OPENING_EUR, openLoadWorld, type LoadWorld } from './load-world.ts'
import type { Sample } from './process-watch.ts'
import { askHostileProvider, CUSTOMER_ATTACKS, hostile, strangers } from './siege-attacks.ts'

export interface SiegePlan {
  /** Of the quiet time, and of the attack. */
  readonly seconds: number
}

/** What the well-behaved customer got in one of the two times. */
export interface Service {
  readonly answers: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Answers that were not 200, by status. */
  readonly refused: ReadonlyMap<number, number>
}

export interface SiegeReport {
  readonly quiet: Service
  readonly attacked: Service
  /** Of the well-behaved customer: every row, balance and receipt. */
  readonly ledger: Ledger
  /** Wrong rows, lost receipts, 5xx, dead processes. */
  readonly faults: readonly string[]
  readonly processes: ReadonlyMap<string, readonly Sample[]>
}

/** What the worker may keep of the attack, and for how long it may need to let go of the rest. */
const KEPT_MIB = 256
const SETTLING_MS = 20_000

const SIDE_BY_SIDE = 4
const PAUSE_MS = 20

/** Five hostile customers, strangers and a hostile provider, and one customer beside them who only wants answers. */
export async function siege({ seconds }: SiegePlan): Promise<SiegeReport> {
  const world = await openLoadWorld({
    scripts: { sound, hostile },
    alone: ['sound', 'hostile'],
    timeouts: {},
    customers: 2 + CUSTOMER_ATTACKS.length,
  })
  try {
    return await run(world, seconds)
  } finally {
    await world.close()
  }
}

async function run(world: LoadWorld, seconds: number): Promise<SiegeReport> {
  const { stack, customers } = world
  const [good, unlucky, ...bad] = customers
  if (good === undefined || unlucky === undefined) throw new Error('no customers')
  const watch = world.watch()
  const outcomes: Outcome[] = []
  await serve(world, good, 1, outcomes)
  const quiet = await serve(world, good, seconds, outcomes)
  const before = workerMib(world)
  const attack = new AbortController()
  const attacks = [
    ...CUSTOMER_ATTACKS.map((attackAs, index) =>
      attackAs(stack, bad[index] ?? unlucky, attack.signal),
    ),
    strangers(stack, attack.signal),
    askHostileProvider(stack, unlucky, attack.signal),
  ]
  await delay(1_000)
  const attacked = await serve(world, good, seconds, outcomes)
  attack.abort()
  await Promise.allSettled(attacks)
  await until(async () => (await world.openRequests()) === 0)
  const settledAt = performance.now() + SETTLING_MS
  while (workerMib(world) > before + KEPT_MIB && performance.now() < settledAt) await delay(500)
  const after = workerMib(world)
  const processes = watch.stop()
  const working = await world.openRequests()
  const ledger = await checkLedger(world, [good], OPENING_EUR, outcomes)
  const pids = stack.localNow().pids
  const died = (['worker', 'enclave'] as const).filter(
    (part) => pids[part] !== stack.local.pids[part],
  )
  const server = [...attacked.refused].filter(([status]) => status >= 500)
  const faults = [
    ...ledger.faults,
    ...died.map((part) => `${part} has died`),
    ...server.map(([status, count]) => `${count} answers of status ${status}`),
    ...(after <= before + KEPT_MIB
      ? []
      : [`the worker had ${before} MiB before the attack and has ${after} MiB`]),
    ...(working === 0 ? [] : [`${working} requests are still at work`]),
  ]
  return { quiet, attacked, ledger, faults, processes }
}

/** The resident memory of the worker now; 0 where no /proc tells it. */
function workerMib(world: LoadWorld): number {
  return world.watch().stop().get('worker')?.at(-1)?.rssMib ?? 0
}

/** Serves the well-behaved customer for a time: streams and whole answers in turn. */
async function serve(
  { stack }: LoadWorld,
  customer: Customer,
  seconds: number,
  outcomes: Outcome[],
): Promise<Service> {
  const endAt = performance.now() + seconds * 1_000
  const times: number[] = []
  const refused = new Map<number, number>()
  const client = async (number: number) => {
    for (let turn = number; performance.now() < endAt; turn++) {
      const begun = performance.now()
      const { status, outcome } = await askOnce(stack, customer, turn % 2 === 0)
      if (status === 200) times.push(performance.now() - begun)
      else refused.set(status, (refused.get(status) ?? 0) + 1)
      if (outcome !== undefined) outcomes.push(outcome)
      await delay(PAUSE_MS)
    }
  }
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, (_, number) => client(number)))
  const sorted = times.toSorted((a, b) => a - b)
  const at = (part: number) => Math.round(sorted[Math.floor(part * (sorted.length - 1))] ?? 0)
  return {
    answers: times.length,
    perSecond: times.length / seconds,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    refused,
  }
}

async function askOnce(
  stack: LoadWorld['stack'],
  customer: Customer,
  stream: boolean,
): Promise<{ status: number; outcome?: Outcome }> {
  try {
    const answer = await stack.fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { authorization: `Bearer ${customer.key}` },
      body: JSON.stringify({
        model: 'sound',
        stream,
        messages: [{ role: 'user', content: 'Hi.' }],
      }),
    })
    const text = await answer.text()
    const requestId = answer.headers.get('x-request-id') ?? ''
    const receiptId = /"receipt_id":\s*"([^"]+)"/.exec(text)?.[1]
    const whole = stream ? text.endsWith('data: [DONE]\n\n') : text.endsWith('}')
    const kind = answer.status !== 200 ? 'failed' : whole ? 'complete' : 'open'
    return { status: answer.status, outcome: { customer, requestId, receiptId, kind } }
  } catch {
    // No answer at all is worse than any status.
    return { status: 599 }
  }
}
