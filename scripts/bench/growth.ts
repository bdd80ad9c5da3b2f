import { freemem } from 'node:os'
import { join } from 'node:path'
import { Field } from './field.ts'
import { addLedgerRows } from './ledger-rows.ts'
import type { Report } from './report.ts'
import { startRouter } from './router.ts'
import type { Bench, Suite } from './suite.ts'
import type { System } from './system.ts'
import { invalidText, markdownTable, of, spreadText } from './table.ts'
import { FULL, QUICK } from './windows.ts'

/** The size of a router's configuration and data. */
export interface GrowthPoint {
  readonly furtherRoutes: number
  readonly customers: number
  readonly ledgerRows: number
  readonly tools: number
}

const BASE: GrowthPoint = { furtherRoutes: 10, customers: 1, ledgerRows: 0, tools: 0 }

/** One dimension grows at a time. */
export function growthPoints(quick: boolean): readonly GrowthPoint[] {
  return [
    BASE,
    { ...BASE, furtherRoutes: 1_000 },
    { ...BASE, furtherRoutes: 10_000 },
    { ...BASE, customers: quick ? 100 : 10_000 },
    { ...BASE, ledgerRows: quick ? 10_000 : 1_000_000 },
    { ...BASE, tools: 1 },
    { ...BASE, tools: 10 },
  ]
}

const TOOL_BYTES = 50 * 1024
const ROUNDS = 3

/** Memory of a router and its daemon under load, including their files in the page cache. */
const BYTES_PER_ROUTER = 1024 ** 3

/** How cost grows with routes, customers, ledger rows and tools, on a router for each point. */
export function growth(bench: Bench): Suite {
  const points = growthPoints(bench.quick)
  const together = freemem() > points.length * BYTES_PER_ROUTER
  const fields = together ? [points] : points.map((point) => [point])
  return {
    name: 'growth',
    options: '--growth',
    extent: { ...(bench.quick ? QUICK : FULL), rounds: ROUNDS, kinds: ['whole-1', 'whole-16'] },
    fields: fields.map((each) => () => startField(each, bench)),
    show: growthTable,
    plots: () => new Map(),
  }
}

async function startField(points: readonly GrowthPoint[], bench: Bench): Promise<Field> {
  const field = new Field()
  for (const point of points) {
    const part = { memory: false, streams: false, tools: toolsOf(point.tools) }
    bench.log(`starting ${labelOf(point)}`)
    await field.enter(labelOf(point), () => startPoint(point, field, bench), part)
  }
  return field
}

async function startPoint(
  point: GrowthPoint,
  field: Field,
  { mock, scratch }: Bench,
): Promise<System> {
  const { customers, ledgerRows } = point
  const directory = join(scratch, labelOf(point).replaceAll(/\W+/g, '-'))
  const router = await startRouter({ mock: mock.address, directory, customers, size: point })
  field.endsWith(() => router.stop())
  const [customerId] = router.customerIds
  if (ledgerRows > 0 && customerId !== undefined) {
    await router.restarted(() => addLedgerRows(router.storageDir, customerId, ledgerRows))
  }
  return router.system(labelOf(point), customers, false)
}

function toolsOf(count: number): readonly unknown[] {
  return Array.from({ length: count }, (_, index) => ({
    type: 'function',
    function: {
      name: `tool_${index}`,
      description: 'x'.repeat(TOOL_BYTES),
      parameters: { type: 'object', properties: {} },
    },
  }))
}

const count = (value: number, what: string) =>
  `${value.toLocaleString('en')} ${what}${value === 1 ? '' : 's'}`

function labelOf({ furtherRoutes, customers, ledgerRows, tools }: GrowthPoint): string {
  return [
    count(furtherRoutes, 'route'),
    count(customers, 'customer'),
    count(ledgerRows, 'row'),
    count(tools, 'tool'),
  ].join(', ')
}

const FIGURES = [
  of('p50 at 1, ms', 'whole-1', ({ p50Ms }) => p50Ms, 2),
  of('requests/s at 16', 'whole-16', ({ perSecond }) => perSecond, 0),
  of('CPU per request at 16, us', 'whole-16', ({ cpuUs }) => cpuUs, 0),
  of('memory at 16, MiB', 'whole-16', ({ residentMib }) => residentMib, 0),
]

/** The points as a table in Markdown, a row each. */
export function growthTable(report: Report): string {
  const rows = report.systems.map((system) => [
    system.name,
    ...FIGURES.map(({ read, digits }) => spreadText(read(system, report), digits)),
    invalidText(system),
  ])
  return markdownTable(['', ...FIGURES.map(({ title }) => title), 'invalid windows'], rows)
}
