import { addExpositions } from '../../protocol/exposition.ts'
import type { TelemetryAnswer } from '../../protocol/telemetry.ts'
import type { Context } from '../context.ts'
import { text } from '../http/reply.ts'
import { gaugeText } from '../metrics/families.ts'
import { restingStates } from '../routing/resting.ts'
import { asAdmin } from './as-admin.ts'

/**
 * GET /admin/metrics in the Prometheus text format: the counts of all workers of this host since they started, and
 * states as of now. A worker whose daemon is unreachable reports its own.
 */
export const showMetrics = asAdmin(async (_request, context) => {
  const others = await context.telemetry.exchange()
  const counts = addExpositions([context.metrics.render(), ...others.metrics])
  const states = `${workText(context, others)}${breakerText(context, others)}${await proofText(context)}`
  return text(`${counts}${states}`, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
})

function workText({ openRequests }: Context, others: TelemetryAnswer): string {
  return gaugeText('cmr_open_requests', 'Open requests to endpoints that need an API key.', [
    { labels: {}, value: openRequests() + others.open_requests },
  ])
}

/** A route counts as resting if it rests in any of the workers. */
function breakerText({ health, catalogue, now }: Context, others: TelemetryAnswer): string {
  const resting = restingStates(health.snapshot(now(), catalogue.routes))
  return gaugeText(
    'cmr_route_resting',
    'Whether a route is out of service for now: 1 resting, 0.5 being probed, 0 in service.',
    catalogue.routes.map(({ id }) => ({
      labels: { route: id },
      value: Math.max(resting[id] ?? 0, others.resting[id] ?? 0),
    })),
  )
}

/**
 * Whether the daemon answers, and the verification status of providers, which only the daemon knows.
 */
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
