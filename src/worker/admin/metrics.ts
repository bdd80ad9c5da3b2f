import type { Context } from '../context.ts'
import { text } from '../http/reply.ts'
import { gaugeText } from '../metrics/families.ts'
import { asAdmin } from './as-admin.ts'

/** GET /admin/metrics in the Prometheus text format: counters since this process started, gauges as of now. */
export const showMetrics = asAdmin(async (_request, context) => {
  const now = `${workText(context)}${breakerText(context)}${await proofText(context)}`
  const body = `${context.metrics.render()}${now}`
  return text(body, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
})

function workText({ openRequests }: Context): string {
  return gaugeText('cmr_open_requests', 'Requests of keyed endpoints that are at work.', [
    { labels: {}, value: openRequests() },
  ])
}

function breakerText({ health, catalogue, now }: Context): string {
  const states = health.snapshot(now(), catalogue.routes)
  return gaugeText(
    'cmr_route_resting',
    'Whether a route is out of service for now: 1 resting, 0.5 being probed, 0 in service.',
    states.map(({ route, state }) => ({ labels: { route }, value: RESTING[state] })),
  )
}

const RESTING = { closed: 0, half_open: 0.5, open: 1 } as const

/** When the daemon is unreachable, the worker still reports its own counters. */
async function proofText({ link }: Context): Promise<string> {
  const proofs = await link.providers().catch(() => undefined)
  const up = gaugeText('cmr_enclave_up', 'Whether the enclave daemon answers.', [
    { labels: {}, value: proofs === undefined ? 0 : 1 },
  ])
  return (
    up +
    gaugeText(
      'cmr_provider_proven',
      'Whether a provider has a current proof.',
      (proofs ?? []).map(({ provider, adapter, state }) => ({
        labels: { provider, adapter, state },
        value: state === 'verified' ? 1 : 0,
      })),
    )
  )
}
