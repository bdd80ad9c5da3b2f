import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import type { AdminApi } from './admin-api.ts'

const POLL_MS = 50

/** The stand-in may come up after the first look at it; the daemon looks again within this time. */
const REFUSED_WITHIN_MS = 5_000

/** Proven, or not to be proven. */
const READY: ReadonlySet<string> = new Set(['verified', 'unattested'])

const providersSchema = z.object({ data: z.array(z.object({ state: z.string() })) })

/**
 * Waits until every provider is proven, so that the first request after the start finds them all. A provider that is
 * refused is waited for a shorter time than one that is not judged yet. Gives up silently after `withinMs`: a provider
 * that does not answer must not keep the others from serving.
 */
export async function untilProvidersJudged(admin: AdminApi, withinMs: number): Promise<void> {
  const startedAt = performance.now()
  for (;;) {
    const { data } = providersSchema.parse(await admin.call('GET', '/admin/providers'))
    const elapsed = performance.now() - startedAt
    const patience = data.some(({ state }) => state === 'pending') ? withinMs : REFUSED_WITHIN_MS
    if (data.every(({ state }) => READY.has(state)) || elapsed > patience) return
    await delay(POLL_MS)
  }
}
