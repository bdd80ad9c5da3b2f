import { AdminApi } from './admin-api.ts'

/** Interval of the webhook rounds, ms. */
const EVERY_MS = 10_000

/**
 * Periodically makes a worker detect and deliver webhook events, because the worker itself only runs during requests.
 * It is always the same worker, so that one consistent view of the routes is reported.
 * @param router address and admin token of that worker; undefined: none at the moment
 * @returns a function that stops the rounds
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
      // A worker that does not answer is restarted by its supervisor; the next round tries again.
    } finally {
      running = false
    }
  }
  const timer = setInterval(() => void round(), everyMs)
  timer.unref()
  return () => clearInterval(timer)
}
