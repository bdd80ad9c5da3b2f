import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import * as z from 'zod'
import { ApiFailure, type Api } from './api.ts'

const routeSchema = z.object({
  route: z.string(),
  state: z.string(),
  errors: z.number(),
  last_failure: z.string().nullable(),
  retry_at: z.string().nullable(),
  latency_ms: z.number().nullable(),
})
const providerSchema = z.object({
  provider: z.string(),
  adapter: z.string(),
  state: z.string(),
  reason: z.string().nullable(),
  verified_at: z.string().nullable(),
  expires_at: z.string().nullable(),
  attestation_strength: z.string().nullable(),
  evidence_sha256: z.string().nullable(),
})
const customerSchema = z.looseObject({
  id: z.string(),
  name: z.string(),
  plan: z.string(),
  billing: z.string(),
  balance_eur: z.string(),
})
const deliverySchema = z.object({
  id: z.string(),
  type: z.string(),
  endpoint: z.string(),
  state: z.string(),
  attempts: z.number(),
  last_result: z.string().nullable(),
  created_at: z.string(),
})

const listOf = <Row extends z.ZodType>(row: Row) => z.object({ data: z.array(row) })

/** The colours of status words; unlisted ones are neutral. */
const MOODS: Readonly<Record<string, 'good' | 'warn' | 'bad'>> = {
  closed: 'good',
  verified: 'good',
  delivered: 'good',
  'half-open': 'warn',
  half_open: 'warn',
  pending: 'warn',
  simulated: 'warn',
  unattested: 'warn',
  open: 'bad',
  failed: 'bad',
  given_up: 'bad',
}

const Word = ({ text }: { readonly text: string }) => (
  <span class="state" data-mood={MOODS[text] ?? 'idle'}>
    {text}
  </span>
)

interface TableProps<Row> {
  readonly api: Api
  readonly now: number
  readonly title: string
  readonly lead: string
  readonly path: string
  readonly row: z.ZodType<Row>
  readonly columns: readonly (readonly [head: string, cell: (row: Row) => ComponentChildren])[]
}

/** A list of the interface, loaded again with every scrape. */
function Table<Row>({ api, now, title, lead, path, row, columns }: TableProps<Row>) {
  const [rows, setRows] = useState<readonly Row[]>()
  const [problem, setProblem] = useState('')
  useEffect(() => {
    let current = true
    const load = async () => {
      try {
        const { data } = await api.json(path, listOf(row))
        if (current) setRows(data)
        if (current) setProblem('')
      } catch (error) {
        const known = error instanceof ApiFailure
        if (current) setProblem(known ? error.message : 'The answer cannot be read.')
      }
    }
    void load()
    return () => {
      current = false
    }
  }, [api, path, row, now])
  return (
    <section class="panel" aria-label={title}>
      <h2>{title}</h2>
      <p class="hint">{lead}</p>
      {problem !== '' && (
        <p class="fault" role="alert">
          {problem}
        </p>
      )}
      {rows?.length === 0 && <p>None.</p>}
      {rows !== undefined && rows.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label={title}>
          <table>
            <thead>
              <tr>
                {columns.map(([head]) => (
                  <th key={head} scope="col">
                    {head}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((one, index) => (
                <tr key={index}>
                  {columns.map(([head, cell]) => (
                    <td key={head}>{cell(one)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}

export interface ListProps {
  readonly api: Api
  /** Unix seconds of the newest scrape. */
  readonly now: number
}

/** A duration before or after now, in the largest suitable unit. */
function ago(time: string | null, now: number): string {
  if (time === null) return '–'
  const seconds = Math.round(Date.parse(time) / 1000 - now)
  const size = Math.abs(seconds)
  const text =
    size < 90
      ? `${size} s`
      : size < 5400
        ? `${Math.round(size / 60)} min`
        : size < 172_800
          ? `${Math.round(size / 3600)} h`
          : `${Math.round(size / 86_400)} d`
  return seconds < 0 ? `${text} ago` : `in ${text}`
}

export const Routes = (props: ListProps) => (
  <Table
    {...props}
    title="Routes"
    lead="As the worker that answered sees them. A resting route is tried again at the time shown."
    path="/admin/routes"
    row={routeSchema}
    columns={[
      ['Route', ({ route }) => <code>{route}</code>],
      ['Circuit', ({ state }) => <Word text={state} />],
      ['Failures', ({ errors }) => errors],
      ['Newest failure', ({ last_failure: kind }) => kind ?? '–'],
      [
        'First delta',
        ({ latency_ms: latency }) => (latency === null ? '–' : `${Math.round(latency)} ms`),
      ],
      ['Tried again', ({ retry_at: time }) => ago(time, props.now)],
    ]}
  />
)

export const Providers = (props: ListProps) => (
  <Table
    {...props}
    title="Providers"
    lead="How far the daemon has proven each provider. An attested one gets nothing while it is not proven; one without an adapter is never proven."
    path="/admin/providers"
    row={providerSchema}
    columns={[
      ['Provider', ({ provider }) => <code>{provider}</code>],
      ['Adapter', ({ adapter }) => adapter],
      ['Proof', ({ state }) => <Word text={state} />],
      [
        'Strength',
        ({ attestation_strength: strength }) =>
          strength === null ? '–' : <Word text={strength} />,
      ],
      ['Verified', ({ verified_at: time }) => ago(time, props.now)],
      ['Ends', ({ expires_at: time }) => ago(time, props.now)],
      ['Reason', ({ reason }) => reason ?? '–'],
      [
        'Evidence',
        ({ evidence_sha256: sha256 }) => (
          <samp title={sha256 ?? ''}>{sha256?.slice(0, 12) ?? '–'}</samp>
        ),
      ],
    ]}
  />
)

export const Customers = (props: ListProps) => (
  <Table
    {...props}
    title="Customers"
    lead="The first hundred, oldest first."
    path="/admin/customers?limit=100"
    row={customerSchema}
    columns={[
      ['Name', ({ name }) => name],
      ['Id', ({ id }) => <samp>{id}</samp>],
      ['Plan', ({ plan }) => plan],
      ['Billing', ({ billing }) => billing],
      ['Balance', ({ balance_eur: balance }) => `${balance} €`],
    ]}
  />
)

export const Webhooks = (props: ListProps) => (
  <Table
    {...props}
    title="Webhooks"
    lead="What was reported to whom, newest event first."
    path="/admin/webhooks/deliveries?limit=100"
    row={deliverySchema}
    columns={[
      ['Event', ({ type }) => <code>{type}</code>],
      ['Endpoint', ({ endpoint }) => endpoint],
      ['State', ({ state }) => <Word text={state} />],
      ['Attempts', ({ attempts }) => attempts],
      ['Newest result', ({ last_result: result }) => result ?? '–'],
      ['Made', ({ created_at: time }) => ago(time, props.now)],
    ]}
  />
)
