import * as z from 'zod'
import { ago, euros } from './format.ts'
import { Panel, LoadState } from './panel.tsx'
import { Table, type Column } from './table.tsx'
import { useData } from './use-data.ts'
import type { ViewProps } from './view.ts'
import { StatusBadge } from './status-badge.tsx'

export const customerSchema = z.object({
  id: z.string(),
  name: z.string(),
  plan: z.string(),
  billing: z.string(),
  balance_eur: z.string(),
  reserved_eur: z.string(),
  suspended_at: z.string().nullable(),
  erased_at: z.string().nullable(),
  created_at: z.string(),
})
const listSchema = z.object({ data: z.array(customerSchema), has_more: z.boolean() })
export type Customer = z.output<typeof customerSchema>

export function stateOf({ suspended_at: suspended, erased_at: erased }: Customer): string {
  if (erased !== null) return 'erased'
  return suspended === null ? 'active' : 'suspended'
}

const columnsAt = (now: number): readonly Column<Customer>[] => [
  [
    'Name',
    ({ id, name }) => <a href={`#/customers/${id}`}>{name === '' ? 'without a name' : name}</a>,
    'long',
  ],
  ['Id', ({ id }) => <samp>{id}</samp>],
  ['State', (customer) => <StatusBadge text={stateOf(customer)} />],
  ['Plan', ({ plan }) => plan],
  ['Billing', ({ billing }) => billing],
  ['Balance', ({ balance_eur: balance }) => euros(balance), 'number'],
  ['Held for requests', ({ reserved_eur: reserved }) => euros(reserved), 'number'],
  ['Since', ({ created_at: time }) => ago(time, now)],
]

/** @param after the last id of the previous page; undefined for the first page */
export function Customers({ after, ...props }: ViewProps & { readonly after: string | undefined }) {
  const from = after === undefined ? '' : `&after=${encodeURIComponent(after)}`
  const known = useData(props, `/admin/customers?limit=50${from}`, listSchema)
  const last = known.data?.data.at(-1)
  return (
    <Panel
      title="Customers"
      takesFocus
      lead="Oldest first. A name leads to keys, spend and requests."
    >
      <LoadState {...known} />
      {known.data && (
        <Table
          caption="Customers"
          rows={known.data.data}
          columns={columnsAt(props.now)}
          keyOf={({ id }) => id}
          empty="There are no customers yet. “npm run admin -- customers create” makes one."
        />
      )}
      <nav class="pages" aria-label="Pages of customers">
        {after !== undefined && <a href="#/customers">First page</a>}
        {known.data?.has_more === true && last && (
          <a href={`#/customers?after=${encodeURIComponent(last.id)}`}>Next page</a>
        )}
      </nav>
    </Panel>
  )
}
