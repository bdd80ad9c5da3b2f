import { z } from 'zod'
import { fromBase64Url, fromUtf8 } from '../../protocol/bytes.ts'
import { addExpositions, readFamilies } from '../../protocol/exposition.ts'
import type { ProviderProof } from '../../protocol/provider-proof.ts'
import type { TelemetryAnswer } from '../../protocol/telemetry.ts'
import type { WebhookEventType } from '../../protocol/webhook-config.ts'
import type { Context } from '../context.ts'
import { FAULTS_METRIC } from '../metrics/metrics.ts'
import { restingStates } from '../routing/resting.ts'
import type { Database } from '../storage/database.ts'
import { numberOf, textOf } from '../storage/row.ts'
import { int64, small, sql, text } from '../storage/sql.ts'

/** The state of one monitored object, healthy or not, as this instance sees it. */
export interface Observation {
  /** Stable name of the object: `provider nova`. */
  readonly key: string
  readonly bad: boolean
  /** Its name in the message. */
  readonly subject: string
  readonly onBad: WebhookEventType
  readonly onGood?: WebhookEventType
}

const HOUR_MS = 3_600_000

/** The states of everything that is monitored except customers and their keys, as the workers of this host see them. */
export async function observe(context: Context, hours: number): Promise<readonly Observation[]> {
  const { link, now } = context
  const [others, state, proofs, expiresAt] = await Promise.all([
    context.telemetry.exchange(),
    link.freshState().catch(() => undefined),
    link.providers().catch(() => []),
    link.trustBundle().then(expiryOf, () => undefined),
  ])
  return [
    ...proofs.flatMap(proofState),
    ...routeStates(context, others),
    {
      key: 'signing',
      bad: state === undefined || state.envelope_sha256 === null,
      subject: state === undefined ? 'enclave_unreachable' : 'no_attestation',
      onBad: 'signing.failing',
    },
    {
      key: 'ledger',
      bad: settlementsFail(context, others),
      subject: 'settlement',
      onBad: 'ledger.failing',
    },
    ...(expiresAt === undefined ? [] : [bundleState(expiresAt, now() + hours * HOUR_MS)]),
  ]
}

/** The state of a provider; none while its evidence is being verified. */
function proofState({ provider, state }: ProviderProof): readonly Observation[] {
  if (state !== 'verified' && state !== 'failed') return []
  const key = `provider ${provider}`
  const events = { onBad: 'provider.proof_lost', onGood: 'provider.proof_regained' } as const
  return [{ key, bad: state === 'failed', subject: provider, ...events }]
}

/**
 * The states of routes. A route that is being probed keeps its previous state: otherwise each failed probe would be reported
 * again.
 */
function routeStates(
  { health, catalogue, now }: Context,
  others: TelemetryAnswer,
): readonly Observation[] {
  const own = restingStates(health.snapshot(now(), catalogue.routes))
  return catalogue.routes.flatMap(({ id }) => {
    const state = Math.max(own[id] ?? 0, others.resting[id] ?? 0)
    if (state > 0 && state < 1) return []
    return [{ key: `route ${id}`, bad: state === 1, subject: id, onBad: 'route.resting' as const }]
  })
}

/**
 * Whether settlements have failed. Without the daemon the counts of other workers are unknown, so only this worker's own
 * count is used.
 */
function settlementsFail({ metrics, watch }: Context, others: TelemetryAnswer): boolean {
  const own = metrics.takeSettlementFaults() > 0
  if (others.metrics.length === 0) return own
  const faults = readFamilies(addExpositions(others.metrics)).find(
    ({ name }) => name === FAULTS_METRIC,
  )
  const counted = [...(faults?.samples ?? [])]
    .filter(([sample]) => sample.includes('part="settlement"'))
    .reduce((sum, [, count]) => sum + count, 0)
  return watch.countedSince(counted) || own
}

function bundleState(expiresAt: string, warnedAt: number): Observation {
  const bad = Date.parse(expiresAt) < warnedAt
  return { key: `bundle ${expiresAt}`, bad, subject: expiresAt, onBad: 'bundle.expiring' }
}

const documentSchema = z.object({ trust_bundle_jws: z.string() })
const bundleSchema = z.object({ expires_at: z.iso.datetime({ offset: true }) })

/** When the trust bundle expires. The daemon has verified its signature. */
function expiryOf(document: string): string | undefined {
  const { trust_bundle_jws: jws } = documentSchema.parse(JSON.parse(document))
  const payload: unknown = JSON.parse(fromUtf8(fromBase64Url(jws.split('.')[1] ?? '')))
  return bundleSchema.safeParse(payload).data?.expires_at
}

/**
 * Stores an event for each state that changed since this instance's previous round; an object seen for the first time counts
 * as previously healthy. If several instances report the same change, it is stored once.
 * @returns the number of events
 */
export async function reportChanges(
  db: Database,
  observations: readonly Observation[],
  {
    instance,
    runId,
    now,
  }: { readonly instance: string; readonly runId: string; readonly now: number },
): Promise<number> {
  const known = await knownStates(db, instance)
  let reported = 0
  for (const { key, bad, subject, onBad, onGood } of observations) {
    const name = `${instance} ${key}`
    if ((known.get(name) ?? false) === bad) continue
    const type = bad ? onBad : onGood
    const id = `${runId}.${reported}`
    const rows = await db.batch([
      sql`INSERT INTO webhook_states (subject, bad, run_id, changed_at)
        VALUES (${name}, ${bad ? 1 : 0}, ${id}, ${int64(now)})
        ON CONFLICT (subject) DO UPDATE SET bad = excluded.bad, run_id = excluded.run_id,
          changed_at = excluded.changed_at
        WHERE webhook_states.bad <> excluded.bad`,
      ...(type === undefined
        ? []
        : [
            sql`INSERT INTO webhook_events (id, type, customer_id, subject, created_at)
              SELECT run_id, ${text(type)}, ${text(null)}, ${text(subject)}, ${int64(now)}
              FROM webhook_states WHERE subject = ${name} AND run_id = ${id} AND bad = ${small(bad ? 1 : 0)}
              ON CONFLICT (id) DO NOTHING RETURNING id`,
          ]),
    ])
    reported += type === undefined ? 0 : (rows.at(-1)?.length ?? 0)
  }
  return reported
}

async function knownStates(db: Database, instance: string): Promise<ReadonlyMap<string, boolean>> {
  const [rows = []] = await db.batch([
    sql`SELECT subject, bad FROM webhook_states WHERE subject LIKE ${`${instance} %`}`,
  ])
  return new Map(rows.map((row) => [textOf(row, 'subject'), numberOf(row, 'bad') === 1]))
}
