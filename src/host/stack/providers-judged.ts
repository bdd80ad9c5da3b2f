import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import type { AdminApi } from './admin-api.ts'

const POLL_MS = 50

/**
 * How long to wait for a refused provider, ms: the stand-in may start after the first verification, and the daemon
 * verifies again within this time.
 */
const REFUSED_TIMEOUT_MS = 5_000

/** Final states: verified, or without attestation. */
const READY: ReadonlySet<string> = new Set(['verified', 'unattested'])

const providersSchema = z.object({ data: z.array(z.object({ state: z.string() })) })

/**
 * Waits until every provider is verified, so that the first request after the start can use them all. A refused
 * provider is awaited for a shorter time than one that is not judged yet. Gives up silently after `timeoutMs`: a
 * provider that does not answer must not keep the others from serving.
 */
export async function untilProvidersJudged(admin: AdminApi, timeoutMs: number): Promise<void> {
  const startedAt = performance.now()
  for (;;) {
    const { data } = providersSchema.parse(await admin.call('GET', '/admin/providers'))
    const elapsed = performance.now() - startedAt
    const limitMs = data.some(({ state }) => state === 'pending') ? timeoutMs : REFUSED_TIMEOUT_MS
    if (data.every(({ state }) => READY.has(state)) || elapsed > limitMs) return
    await delay(POLL_MS)
  }
}
