import { useMemo } from 'preact/hooks'
import * as z from 'zod'
import { customerSchema, stateOf, type Customer } from './customers.tsx'
import { ago, count, euros } from './format.ts'
import { Panel, LoadState } from './panel.tsx'
import type { Curve } from './curves.ts'
import { Plot } from './plot.tsx'
import { Fact } from './providers.tsx'
import { Table, type Column } from './table.tsx'
import { useData } from './use-data.ts'
import type { ViewProps } from './view.ts'
import { StatusBadge } from './status-badge.tsx'

const DAY_MS = 86_400_000
const DAYS = 30

const keySchema = z.object({
  key_prefix: z.string(),
  name: z.string(),
  created_at: z.string(),
  expires_at: z.string().nullable(),
  limit_eur: z.string().nullable(),
  limit_reset: z.string(),
  spent_eur: z.string(),
  remaining_eur: z.string().nullable(),
  resets_at: z.string().nullable(),
})
const keysSchema = z.object({ data: z.array(keySchema) })
const summarySchema = z.object({
  data: z.array(
    z.object({
      day: z.string(),
      key_prefix: z.string().nullable(),
      requests: z.number(),
      cost_eur: z.number(),
    }),
  ),
})
const usageSchema = z.object({
  data: z.array(
    z.object({
      id: z.string(),
      model: z.string(),
      prompt_tokens: z.number(),
      completion_tokens: z.number(),
      cost_eur: z.number(),
      receipt_id: z.string().nullable(),
      created_at: z.string(),
    }),
  ),
  total_count: z.number(),
})

type Key = z.output<typeof keySchema>
type Usage = z.output<typeof usageSchema>['data'][number]
type Summary = z.output<typeof summarySchema>['data']

/** The end of a key's prefix, which tells the keys of one customer apart. */
export const keyName = (prefix: string): string => `…${prefix.split('_').at(-1) ?? ''}`

const keyColumns = (now: number): readonly Column<Key>[] => [
  ['Key', ({ key_prefix: prefix }) => <samp title={prefix}>{keyName(prefix)}</samp>],
  ['Name', ({ name }) => name, 'long'],
  ['Spent', ({ spent_eur: spent }) => euros(spent), 'number'],
  [
    'Limit',
    ({ limit_eur: limit, limit_reset: reset }) =>
      limit === null ? 'none' : `${euros(limit)}${reset === 'none' ? '' : ` ${reset}`}`,
    'number',
  ],
  ['Left', ({ remaining_eur: left }) => (left === null ? '–' : euros(left)), 'number'],
  ['Resets', ({ resets_at: time }) => ago(time, now)],
  ['Expires', ({ expires_at: time }) => ago(time, now)],
  ['Created', ({ created_at: time }) => ago(time, now)],
]

const usageColumns = (now: number): readonly Column<Usage>[] => [
  [
    'Request',
    ({ id }) => (
      <a href={`#/requests/${id}`}>
        <samp>{id}</samp>
      </a>
    ),
  ],
  ['Route', ({ model }) => <code>{model}</code>],
  ['Tokens in', ({ prompt_tokens: tokens }) => count(tokens), 'number'],
  ['Tokens out', ({ completion_tokens: tokens }) => count(tokens), 'number'],
  ['Cost', ({ cost_eur: cost }) => euros(cost), 'number'],
  ['Receipt', ({ receipt_id: id }) => (id === null ? 'none' : <samp>{id}</samp>)],
  ['When', ({ created_at: time }) => ago(time, now)],
]

/** One customer: balance, keys, spend over the last month, and the newest requests. */
export function CustomerView({ id, ...props }: ViewProps & { readonly id: string }) {
  const path = `/admin/customers/${encodeURIComponent(id)}`
  const start = new Date(startOfDays(props.now)).toISOString()
  const customer = useData(props, path, customerSchema)
  const keys = useData(props, `${path}/keys`, keysSchema)
  const spend = useData(
    props,
    `${path}/usage/summary?group_by=day,key&start=${start}`,
    summarySchema,
  )
  const usage = useData(props, `${path}/usage?limit=25`, usageSchema)
  return (
    <>
      <Panel
        title={customer.data?.name ?? 'Customer'}
        takesFocus
        aside={<a href="#/customers">All customers</a>}
      >
        <LoadState {...customer} />
        {customer.data && <Facts customer={customer.data} />}
      </Panel>
      <Panel title="Spend" lead={`By day (UTC) and key, the last ${DAYS} days.`}>
        <LoadState {...spend} />
        {spend.data && <SpendPlot rows={spend.data.data} now={props.now} />}
      </Panel>
      <Panel title="Keys">
        <LoadState {...keys} />
        {keys.data && (
          <Table
            caption="Keys"
            rows={keys.data.data}
            columns={keyColumns(props.now)}
            keyOf={(key) => key.key_prefix}
            empty="This customer has no keys."
          />
        )}
      </Panel>
      <Panel
        title="Newest requests"
        lead="What was billed. An id leads from the key to the receipt."
      >
        <LoadState {...usage} />
        {usage.data && (
          <Table
            caption="Newest requests"
            rows={usage.data.data}
            columns={usageColumns(props.now)}
            keyOf={(row) => row.id}
            empty="Nothing was billed yet."
          />
        )}
      </Panel>
    </>
  )
}

function Facts({ customer }: { readonly customer: Customer }) {
  return (
    <dl class="facts-row">
      <div>
        <dt>State</dt>
        <dd>
          <StatusBadge text={stateOf(customer)} />
        </dd>
      </div>
      <Fact name="Balance" text={euros(customer.balance_eur)} />
      <Fact name="Held for requests" text={euros(customer.reserved_eur)} />
      <Fact name="Billing" text={customer.billing} />
      <Fact name="Plan" text={customer.plan} />
      <Fact name="Id" text={customer.id} />
    </dl>
  )
}

const startOfDays = (now: number) => now - (now % DAY_MS) - (DAYS - 1) * DAY_MS

const COLORS = ['--accent', '--good', '--warn', '--plum']

function SpendPlot({ rows, now }: { readonly rows: Summary; readonly now: number }) {
  const today = now - (now % DAY_MS)
  const times = useMemo(
    () => Array.from({ length: DAYS }, (_, index) => (today - (DAYS - 1 - index) * DAY_MS) / 1000),
    [today],
  )
  if (rows.length === 0) return <p class="empty">Nothing was billed in this time.</p>
  return (
    <Plot
      title="Billed"
      unit="per day"
      times={times}
      curves={spendByKey(rows, times)}
      show={euros}
    />
  )
}

/** A curve of the total spend, and one for each of the keys with the highest spend. */
export function spendByKey(rows: Summary, times: readonly number[]): readonly Curve[] {
  const totals = new Map<string, number>()
  for (const { key_prefix: key, cost_eur: cost } of rows) {
    totals.set(key ?? '', (totals.get(key ?? '') ?? 0) + cost)
  }
  const keys = [...totals].toSorted(([, one], [, other]) => other - one).map(([key]) => key)
  const curve = (label: string, color: string, own: Summary): Curve => {
    const byDay = Map.groupBy(own, ({ day }) => day)
    const values = times.map((time) => {
      const day = new Date(time * 1000).toISOString().slice(0, 10)
      return (byDay.get(day) ?? []).reduce((sum, { cost_eur: cost }) => sum + cost, 0)
    })
    return { label, color, values, total: euros(values.reduce((one, other) => one + other, 0)) }
  }
  const all = curve('all keys', '--accent', rows)
  if (keys.length < 2) return [all]
  return [
    all,
    ...keys.slice(0, 3).map((key, index) =>
      curve(
        key === '' ? 'deleted keys' : keyName(key),
        COLORS[index + 1] ?? '--idle',
        rows.filter((row) => (row.key_prefix ?? '') === key),
      ),
    ),
  ]
}
