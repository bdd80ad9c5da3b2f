import { z } from 'zod'
import { fromBase64Url, fromUtf8 } from '../../protocol/bytes.ts'
import type { WebhookEventType } from '../../protocol/webhook-config.ts'
import type { Context } from '../context.ts'
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

/** The states of everything that is monitored except customers and their keys. */
export async function observe(context: Context, hours: number): Promise<readonly Observation[]> {
  const { link, health, catalogue, now, metrics } = context
  const state = await link.freshState().catch(() => undefined)
  const [proofs, expiresAt] = await Promise.all([
    link.providers().catch(() => []),
    link.trustBundle().then(expiryOf, () => undefined),
  ])
  const resting = health.snapshot(now(), catalogue.routes)
  const settling = metrics.takeSettlementFaults()
  return [
    ...proofs
      .filter(({ state: proof }) => proof === 'verified' || proof === 'failed')
      .map(({ provider, state: proof }) => ({
        key: `provider ${provider}`,
        bad: proof === 'failed',
        subject: provider,
        onBad: 'provider.proof_lost' as const,
        onGood: 'provider.proof_regained' as const,
      })),
    ...resting.map(({ route, state: breaker }) => ({
      key: `route ${route}`,
      bad: breaker === 'open',
      subject: route,
      onBad: 'route.resting' as const,
    })),
    {
      key: 'signing',
      bad: state === undefined || state.envelope_sha256 === null,
      subject: state === undefined ? 'enclave_unreachable' : 'no_attestation',
      onBad: 'signing.failing',
    },
    { key: 'ledger', bad: settling > 0, subject: 'settlement', onBad: 'ledger.failing' },
    ...(expiresAt === undefined
      ? []
      : [
          {
            key: `bundle ${expiresAt}`,
            bad: Date.parse(expiresAt) - now() < hours * HOUR_MS,
            subject: expiresAt,
            onBad: 'bundle.expiring' as const,
          },
        ]),
  ]
}

const documentSchema = z.object({ trust_bundle_jws: z.string() })
const bundleSchema = z.object({ expires_at: z.iso.datetime({ offset: true }) })

/** When the bundle expires. The daemon has checked its signature. */
function expiryOf(document: string): string | undefined {
  const { trust_bundle_jws: jws } = documentSchema.parse(JSON.parse(document))
  const payload: unknown = JSON.parse(fromUtf8(fromBase64Url(jws.split('.')[1] ?? '')))
  return bundleSchema.safeParse(payload).data?.expires_at
}

/**
 * Stores an event for each state that changed since this instance's previous round; an object seen for the first time
 * counts as previously healthy. Concurrent instances report a change once.
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
