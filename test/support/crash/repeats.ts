import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import type { RouterAddress, TestCustomer } from '../customer.ts'
import { send, sha256, sightingOf, type CrashRequest, type Sighting } from './clients.ts'

/** The claim of a process that died lapses after a minute. */
const ANSWERED_WITHIN_MS = 120_000
const PAUSE_MS = 500
const LANES = 8

/** Carried out and not kept, or another request: trying again helps neither. */
const FINAL = new Set([200, 410, 422])

/**
 * Repeats every request under its `Idempotency-Key` twice, once nothing dies any more, and proves that the first repeat
 * gets an answer, the same as the client had if it had a complete one, and the second the same bytes again.
 * @returns what was carried out only now
 */
export async function repeatAll(
  router: RouterAddress,
  customer: TestCustomer,
  sightings: readonly Sighting[],
): Promise<readonly Sighting[]> {
  const carriedOut: Sighting[] = []
  const waiting = sightings.values()
  const lane = async () => {
    for (const sighting of waiting) {
      const first = await answerTo(router, customer, sighting)
      if (sighting.end === 'complete') {
        expect(first.replayed).toBe(true)
        expect(sha256(first.text)).toBe(sighting.wholeDigest)
      }
      if (!first.replayed) carriedOut.push(first.sighting)
      const second = await answerTo(router, customer, sighting)
      expect(second.replayed).toBe(true)
      expect(second.text).toBe(first.text)
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane))
  return carriedOut
}

async function answerTo(
  router: RouterAddress,
  customer: TestCustomer,
  { stream, wantsReceipt, idempotencyKey }: CrashRequest,
) {
  const request = { stream, wantsReceipt, idempotencyKey }
  const deadline = performance.now() + ANSWERED_WITHIN_MS
  for (;;) {
    const answer = await send(router, customer, request)
    const text = await answer.text()
    if (!FINAL.has(answer.status) && performance.now() < deadline) {
      await delay(PAUSE_MS)
      continue
    }
    expect({ status: answer.status, text }).toEqual({ status: 200, text })
    const replayed = answer.headers.get('idempotency-replayed') === 'true'
    return { replayed, text, sighting: sightingOf(request, answer, text) }
  }
}
