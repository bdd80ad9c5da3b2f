import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import type { AdminApi } from './admin-api.ts'

const POLL_MS = 50

const providersSchema = z.object({ data: z.array(z.object({ state: z.string() })) })

/**
 * Waits until no provider's evidence is still to be judged, so that the first question of a newcomer finds them all.
 * Gives up silently after `withinMs`: a provider that does not answer must not keep the others from serving.
 */
export async function untilProvidersJudged(admin: AdminApi, withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs
  while (performance.now() < deadline) {
    const { data } = providersSchema.parse(await admin.call('GET', '/admin/providers'))
    if (data.every(({ state }) => state !== 'pending')) return
    await delay(POLL_MS)
  }
}
