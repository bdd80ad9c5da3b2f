import { AdminApi } from './admin-api.ts'

/** How often a router looks for what it should report. */
const EVERY_MS = 10_000

/**
 * Has a worker look, round by round, for what its webhooks are to report, and deliver what is due: the worker itself
 * only lives while it answers. Always the same worker is asked, so that one view of the routes is reported.
 * @param router where to ask and with which token; undefined: nowhere at the moment
 * @returns what ends the rounds
 */
export function startWebhookRounds(
  router: () => { readonly baseUrl: string; readonly adminToken: string } | undefined,
  everyMs = EVERY_MS,
): () => void {
  let running = false
  const round = async () => {
    const target = router()
    if (target === undefined || running) return
    running = true
    try {
      await new AdminApi(target.baseUrl, target.adminToken).call('POST', '/admin/webhooks/run')
    } catch {
      // A worker that does not answer is restarted by its supervisor; the next round asks again.
    } finally {
      running = false
    }
  }
  const timer = setInterval(() => void round(), everyMs)
  timer.unref()
  return () => clearInterval(timer)
}
