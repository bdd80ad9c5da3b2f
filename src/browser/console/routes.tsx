import * as z from 'zod'
import { ago, duration, short } from './format.ts'
import { Panel, LoadState } from './panel.tsx'
import { Table, type Column } from './table.tsx'
import { useData } from './use-data.ts'
import type { ViewProps } from './view.ts'
import { CIRCUIT_LABELS, StatusBadge } from './status-badge.tsx'

const pricing = z
  .looseObject({
    currency: z.string(),
    input_per_mtok: z.number().optional(),
    output_per_mtok: z.number().optional(),
    billing_unit: z.string().optional(),
    unit_amount: z.number().optional(),
  })
  .nullable()

const routeSchema = z.object({
  route: z.string(),
  state: z.string(),
  errors: z.number(),
  last_failure: z.string().nullable(),
  retry_at: z.string().nullable(),
  latency_ms: z.number().nullable(),
  type: z.string(),
  pricing,
  proof: z.object({
    adapter: z.string(),
    state: z.string(),
    verified_at: z.string().nullable(),
    expires_at: z.string().nullable(),
    attestation_strength: z.string().nullable(),
    evidence_sha256: z.string().nullable(),
  }),
})
const listSchema = z.object({ data: z.array(routeSchema) })
type Route = z.output<typeof routeSchema>

const SIGNS: Readonly<Record<string, string>> = { eur: '€', usd: '$' }

/** `€ 0.20 in, € 0.60 out / M tokens`, or a price per unit. */
export function priceText(price: z.output<typeof pricing>): string {
  if (price === null) return 'not priced'
  const sign = SIGNS[price.currency] ?? price.currency
  if (price.billing_unit !== undefined) {
    return `${sign} ${price.unit_amount ?? 0} / ${price.billing_unit.replaceAll('_', ' ')}`
  }
  return `${sign} ${price.input_per_mtok ?? 0} in, ${sign} ${price.output_per_mtok ?? 0} out / M tokens`
}

function columnsAt(now: number): readonly Column<Route>[] {
  return [
    ['Route', ({ route }) => <code>{route}</code>],
    ['Health', ({ state }) => <StatusBadge text={CIRCUIT_LABELS[state] ?? state} />],
    [
      'Failures',
      ({ errors, last_failure: last }) => (
        <>
          {errors} {last !== null && <small>last: {last.replaceAll('_', ' ')}</small>}
        </>
      ),
    ],
    ['Next try', ({ retry_at: time }) => ago(time, now)],
    [
      'First delta',
      ({ latency_ms: latency }) => (latency === null ? '–' : duration(latency)),
      'number',
    ],
    ['Price', ({ pricing: price }) => priceText(price)],
    ['Proof', ({ proof }) => <StatusBadge text={proof.state} />],
    [
      'Strength',
      ({ proof: { attestation_strength: strength } }) =>
        strength === null ? '–' : <StatusBadge text={strength} />,
    ],
    ['Verified', ({ proof }) => ago(proof.verified_at, now)],
    ['Proof expires', ({ proof }) => ago(proof.expires_at, now)],
    [
      'Evidence',
      ({ proof: { evidence_sha256: sha256 } }) =>
        sha256 === null ? '–' : <samp title={sha256}>{short(sha256)}</samp>,
    ],
  ]
}

export function Routes(props: ViewProps) {
  const known = useData(props, '/admin/routes', listSchema)
  return (
    <Panel
      title="Routes"
      takesFocus
      lead="Health as seen by the worker that answers. A resting route takes requests only after all others; one whose provider must be proven takes none while it is not."
    >
      <LoadState {...known} />
      {known.data && (
        <Table
          caption="Routes"
          rows={known.data.data}
          columns={columnsAt(props.now)}
          keyOf={({ route }) => route}
          empty="No routes are configured."
        />
      )}
    </Panel>
  )
}
