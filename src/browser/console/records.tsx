import * as z from 'zod'
import { ago } from './format.ts'
import { Panel, LoadState } from './panel.tsx'
import { Table, type Column } from './table.tsx'
import { useData } from './use-data.ts'
import type { ViewProps } from './view.ts'
import { StatusBadge } from './status-badge.tsx'

const deliverySchema = z.object({
  id: z.string(),
  type: z.string(),
  endpoint: z.string(),
  state: z.string(),
  attempts: z.number(),
  last_result: z.string().nullable(),
  created_at: z.string(),
  next_attempt_at: z.string().nullable(),
})
const deliveriesSchema = z.object({ data: z.array(deliverySchema) })
type Delivery = z.output<typeof deliverySchema>

const deliveryColumns = (now: number): readonly Column<Delivery>[] => [
  ['Event', ({ type }) => <code>{type}</code>],
  ['Endpoint', ({ endpoint }) => endpoint],
  ['State', ({ state }) => <StatusBadge text={state} />],
  ['Attempts', ({ attempts }) => attempts, 'number'],
  ['Last result', ({ last_result: result }) => result ?? '–'],
  ['Created', ({ created_at: time }) => ago(time, now)],
  ['Next try', ({ next_attempt_at: time }) => ago(time, now)],
]

export function Webhooks(props: ViewProps) {
  const known = useData(props, '/admin/webhooks/deliveries?limit=100', deliveriesSchema)
  return (
    <Panel title="Webhooks" takesFocus lead="What was reported to whom, newest event first.">
      <LoadState {...known} />
      {known.data && (
        <Table
          caption="Deliveries of webhooks"
          rows={known.data.data}
          columns={deliveryColumns(props.now)}
          keyOf={({ id, endpoint }) => `${id} ${endpoint}`}
          empty="Nothing was reported yet, or no webhooks are configured."
        />
      )}
    </Panel>
  )
}

const entrySchema = z.object({
  id: z.string(),
  created_at: z.string(),
  token_name: z.string(),
  action: z.string(),
  target: z.string().nullable(),
  changes: z.record(z.string(), z.unknown()),
  status: z.number().nullable(),
  created: z.string().nullable(),
})
const auditSchema = z.object({ data: z.array(entrySchema), has_more: z.boolean() })
type Entry = z.output<typeof entrySchema>

const entryColumns = (now: number): readonly Column<Entry>[] => [
  [
    'When',
    ({ created_at: time }) => (
      <time dateTime={time} title={new Date(time).toLocaleString()}>
        {ago(time, now)}
      </time>
    ),
  ],
  ['Who', ({ token_name: name }) => name],
  ['Action', ({ action }) => <code>{action}</code>],
  ['Target', ({ target, created }) => <samp>{target ?? created ?? '–'}</samp>],
  ['Changes', ({ changes }) => changesText(changes), 'long'],
  [
    'Result',
    ({ status }) =>
      status === null ? (
        <StatusBadge text="unknown" />
      ) : (
        <StatusBadge text={status < 400 ? 'done' : `${status}`} />
      ),
  ],
]

function changesText(changes: Entry['changes']): string {
  const members = Object.entries(changes).map(
    ([name, value]) => `${name}: ${JSON.stringify(value)}`,
  )
  return members.length === 0 ? '–' : members.join(', ')
}

/** @param before the last id of the previous page; undefined for the first page */
export function Audit({ before, ...props }: ViewProps & { readonly before: string | undefined }) {
  const from = before === undefined ? '' : `&before=${encodeURIComponent(before)}`
  const known = useData(props, `/admin/audit?limit=50${from}`, auditSchema)
  const last = known.data?.data.at(-1)
  return (
    <Panel
      title="Audit log"
      takesFocus
      lead="What operators did, newest first. It has no secrets, and nothing in it can be changed."
    >
      <LoadState {...known} />
      {known.data && (
        <Table
          caption="Audit log"
          rows={known.data.data}
          columns={entryColumns(props.now)}
          keyOf={({ id }) => id}
          empty="Nothing was done yet."
        />
      )}
      <nav class="pages" aria-label="Pages of the audit log">
        {before !== undefined && <a href="#/audit">Newest</a>}
        {known.data?.has_more === true && last && (
          <a href={`#/audit?before=${encodeURIComponent(last.id)}`}>Older</a>
        )}
      </nav>
    </Panel>
  )
}
