import { setTimeout as delay } from 'node:timers/promises'
import type { Customer } from '../faults/world.ts'
import type { Stack } from '../support/stack.ts'
import type { Outcome } from './ledger-check.ts'

/** What the well-behaved customer got in a time. */
export interface Service {
  readonly answers: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Answers that were not 200, by status and code. */
  readonly refused: ReadonlyMap<string, number>
}

const SIDE_BY_SIDE = 4
const PAUSE_MS = 20

/** Serves the well-behaved customer for a time: streams and whole answers in turn. */
export async function serve(
  stack: Stack,
  customer: Customer,
  seconds: number,
  outcomes: Outcome[],
): Promise<Service> {
  const endAt = performance.now() + seconds * 1_000
  const times: number[] = []
  const refused = new Map<string, number>()
  const client = async (number: number) => {
    for (let turn = number; performance.now() < endAt; turn++) {
      const begun = performance.now()
      const { refusal, outcome } = await askOnce(stack, customer, turn % 2 === 0)
      if (refusal === undefined) times.push(performance.now() - begun)
      else refused.set(refusal, (refused.get(refusal) ?? 0) + 1)
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

interface Asked {
  /** Status and code of an answer that was not 200; `no answer` where none came. */
  readonly refusal: string | undefined
  readonly outcome?: Outcome
}

async function askOnce(stack: Stack, customer: Customer, stream: boolean): Promise<Asked> {
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
    const code = /"code":\s*"([^"]+)"/.exec(text)?.[1] ?? 'none'
    const refusal =
      kind === 'failed' ? `${answer.status} ${code}` : kind === 'open' ? `cut ${code}` : undefined
    return { refusal, outcome: { customer, requestId, receiptId, kind } }
  } catch {
    // No answer at all is worse than any status.
    return { refusal: 'no answer' }
  }
}
