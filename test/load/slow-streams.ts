import { setTimeout as delay } from 'node:timers/promises'
import { content, DONE, EVENT_STREAM, ROLE, STOP, usageFrame } from '../faults/answers.ts'
import type { Customer } from '../faults/world.ts'
import type { Script } from '../support/fault-provider.ts'
import { becomesTrue, type Stack } from '../support/stack.ts'
import { checkLedger, type Ledger, type Outcome } from './ledger-check.ts'
import { openLoadWorld, OPENING_EUR, type LoadWorld } from './load-world.ts'
import { peakOf, type Sample } from './process-watch.ts'

export interface LoadPlan {
  readonly streams: number
  /** How long all of them run side by side. */
  readonly seconds: number
  readonly customers: number
}

export interface LoadReport {
  readonly faults: readonly string[]
  readonly ledger: Ledger
  /** The most requests that the router itself counted at one time. */
  readonly concurrent: number
  /** From the first request to the first delta of the last, in seconds. */
  readonly openingSeconds: number
  readonly processes: ReadonlyMap<string, readonly Sample[]>
  /** The faults of its dependencies that the router counted, as its metrics report them. */
  readonly counted: readonly string[]
}

const FRAME_EVERY_MS = 1_000
/** A stream keeps its buffers, and little else. */
const MAX_KIB_A_STREAM = 512
const MAX_DESCRIPTORS_A_STREAM = 12
/** How long the processes are looked at before, and how often the streams are counted. */
const CALM_MS = 1_500
const COUNT_EVERY_MS = 2_000

/** Nothing here is about clocks. */
const PATIENT = {
  headers_ms: 120_000,
  first_delta_ms: 120_000,
  idle_ms: 120_000,
  stream_open_ms: 120_000,
  stream_headers_after_ms: 60_000,
  stream_ms: 600_000,
  keep_alive_ms: 2_000,
}

/**
 * Slow streams side by side: none ends before all have begun and have run for a while. Then every one must have
 * come to its end, with its row and its receipt.
 */
export async function slowStreams(plan: LoadPlan): Promise<LoadReport> {
  const stage = new Stage(plan)
  const world = await openLoadWorld({
    scripts: { slow: stage.script },
    alone: ['slow'],
    timeouts: PATIENT,
    customers: plan.customers,
  })
  try {
    return await run(world, plan, stage)
  } finally {
    await world.close()
  }
}

/** Knows when all streams have begun, and so when they may end. */
class Stage {
  openingSeconds = 0
  readonly #plan: LoadPlan
  #begun = 0
  #started = 0
  #endAt = Number.POSITIVE_INFINITY

  constructor(plan: LoadPlan) {
    this.#plan = plan
  }

  begin(): void {
    this.#begun = performance.now()
  }

  readonly script: Script = async ({ wire }) => {
    wire.head(200, EVENT_STREAM)
    wire.send(ROLE + content('Once '))
    this.#started += 1
    if (this.#started === this.#plan.streams) {
      this.openingSeconds = (performance.now() - this.#begun) / 1000
      this.#endAt = performance.now() + this.#plan.seconds * 1000
    }
    while (!wire.over && performance.now() < this.#endAt) {
      await delay(FRAME_EVERY_MS)
      wire.send(content('upon a time '))
    }
    wire.send(STOP + usageFrame() + DONE)
    wire.end()
  }
}

async function run(world: LoadWorld, plan: LoadPlan, stage: Stage): Promise<LoadReport> {
  const { stack, customers } = world
  const watch = world.watch()
  await delay(CALM_MS)
  let concurrent = 0
  const count = setInterval(() => {
    void world.openRequests().then((now) => (concurrent = Math.max(concurrent, now)))
  }, COUNT_EVERY_MS)
  stage.begin()
  const outcomes = await Promise.all(
    Array.from({ length: plan.streams }, (_, index) =>
      stream(stack, customers[index % customers.length]),
    ),
  )
  clearInterval(count)
  await becomesTrue(async () => (await world.openRequests()) === 0)
  const processes = watch.stop()
  const counted = await world.faultsCounted()
  const ledger = await checkLedger(world, customers, OPENING_EUR, outcomes)
  const cut = outcomes.filter(({ kind }) => kind !== 'complete').length
  const died = stack.localNow().pids.worker !== stack.local.pids.worker
  const faults = [
    ...(cut === 0 ? [] : [`${cut} of ${plan.streams} streams did not come to their end`]),
    ...(died ? ['the worker has died'] : []),
    ...(ledger.rows === plan.streams ? [] : [`${ledger.rows} rows of ${plan.streams} streams`]),
    ...(concurrent >= plan.streams ? [] : [`only ${concurrent} streams at one time`]),
    ...resourceFaults(processes, plan.streams),
    ...ledger.faults,
  ]
  return { faults, ledger, concurrent, openingSeconds: stage.openingSeconds, processes, counted }
}

async function stream(stack: Stack, customer: Customer | undefined): Promise<Outcome> {
  if (customer === undefined) throw new Error('a stream needs a customer')
  const answer = await stack.fetch('/v1/chat/completions', {
    method: 'POST',
    headers: { authorization: `Bearer ${customer.key}` },
    body: JSON.stringify({
      model: 'slow',
      stream: true,
      messages: [{ role: 'user', content: 'Tell me a story.' }],
    }),
  })
  const requestId = answer.headers.get('x-request-id') ?? ''
  if (answer.status !== 200) return { customer, requestId, kind: 'failed' }
  const text = await answer.text().catch(() => '')
  const receiptId = /"receipt_id":"([^"]+)"/.exec(text)?.[1]
  const complete = text.endsWith('data: [DONE]\n\n') && receiptId !== undefined
  return { customer, requestId, receiptId, kind: complete ? 'complete' : 'open' }
}

function resourceFaults(processes: LoadReport['processes'], streams: number): string[] {
  return [...processes].flatMap(([name, samples]) => {
    const [first] = samples
    if (first === undefined) return []
    const kib = ((peakOf(samples, 'rssMib') - first.rssMib) * 1024) / streams
    const files = (peakOf(samples, 'descriptors') - first.descriptors) / streams
    return [
      // A hundred MiB for the runtime's own heap, however few the streams are.
      ...(kib > MAX_KIB_A_STREAM + 102_400 / streams
        ? [`${name} took ${Math.round(kib)} KiB a stream`]
        : []),
      ...(files > MAX_DESCRIPTORS_A_STREAM ? [`${name} took ${files} descriptors a stream`] : []),
    ]
  })
}
