import { freemem } from 'node:os'
import { join } from 'node:path'
import { Field } from './field.ts'
import { addLedgerRows } from './ledger-rows.ts'
import type { Report } from './report.ts'
import { startRouter } from './router.ts'
import { section } from './page.ts'
import type { Bench, Exhibit, Suite } from './suite.ts'
import type { System } from './system.ts'
import type { Plot } from './plot.ts'
import { of, systemTable } from './table.ts'
import { cpu, reader, targetTable, type Target } from './targets.ts'
import type { WindowPlan } from './measure.ts'
import { FULL, QUICK, warmUpFor, type WindowKind } from './windows.ts'

/** The size of a router's configuration and data. */
export interface GrowthPoint {
  readonly furtherRoutes: number
  readonly customers: number
  readonly ledgerRows: number
  readonly tools: number
}

const BASE: GrowthPoint = { furtherRoutes: 10, customers: 1, ledgerRows: 0, tools: 0 }

/** The measured points; each grows in one dimension only. */
export function growthPoints(quick: boolean): readonly GrowthPoint[] {
  return [
    BASE,
    { ...BASE, furtherRoutes: 1_000 },
    { ...BASE, furtherRoutes: 10_000 },
    { ...BASE, customers: 100 },
    { ...BASE, customers: quick ? 1_000 : 10_000 },
    { ...BASE, ledgerRows: quick ? 10_000 : 10_000_000 },
    { ...BASE, tools: 1 },
    { ...BASE, tools: 10 },
  ]
}

const KINDS: readonly WindowKind[] = ['whole-1', 'whole-16']

const TOOL_BYTES = 50 * 1024
const ROUNDS = 3

/** The memory of a router and its enclave process under load, including their files in the page cache. */
const BYTES_PER_ROUTER = 1024 ** 3

export const GROWTH: Exhibit = {
  name: 'growth',
  sections: (report) => [
    section(
      'Cost by size',
      ['growth'],
      targetTable(report, GROWTH_TARGETS),
      systemTable(report, FIGURES),
    ),
  ],
  plots: (report) => ({ growth: growthPlot(report) }),
}

/** Measures how cost grows with routes, customers, ledger rows and tools. Each point has a router of its own. */
export function growth(bench: Bench): Suite {
  const points = growthPoints(bench.quick)
  const together = freemem() > points.length * BYTES_PER_ROUTER
  const fields = together ? [points] : points.map((point) => [point])
  return {
    options: '--growth',
    extent: { ...(bench.quick ? QUICK : FULL), rounds: ROUNDS, kinds: KINDS },
    fields: fields.map((each) => () => startField(each, bench)),
  }
}

async function startField(points: readonly GrowthPoint[], bench: Bench): Promise<Field> {
  const field = new Field()
  for (const point of points) {
    const tools = toolsOf(point.tools)
    const warmUp = warmUpOf(point.customers)
    const part = { sizes: false, kinds: KINDS, tools, warmUp }
    bench.log(`starting ${labelOf(point)}`)
    await field.enter(labelOf(point), () => startPoint(point, field, bench), part)
  }
  return field
}

/**
 * A warm-up that is long enough to serve every customer at 350 requests/s. The ledger loads an account at its first use
 * and then caches it, so only later requests represent a warm router.
 */
function warmUpOf(customers: number): readonly WindowPlan[] {
  return warmUpFor(KINDS).map((plan) => ({
    ...plan,
    windowMs: Math.max(plan.windowMs, customers * 3),
  }))
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

/** The maximum cost of a point relative to the point it is compared with; less is noise. */
const FLAT = 1.15

/** A target: CPU per request at one point divided by that at another. */
function flat(title: string, point: Partial<GrowthPoint>, base: Partial<GrowthPoint> = {}): Target {
  const measure = (report: Report) => {
    const read = reader(report, 'whole-16', cpu)
    const [grown, small] = [point, base].map((change) => read(labelOf({ ...BASE, ...change })))
    return grown === undefined || small === undefined ? undefined : grown / small
  }
  return { title, atMost: FLAT, measure }
}

const GROWTH_TARGETS: readonly Target[] = [
  flat('CPU with 10,000 routes, of 10 routes', { furtherRoutes: 10_000 }),
  flat('CPU with 10,000 customers, of 100', { customers: 10_000 }, { customers: 100 }),
  flat('CPU with 10,000,000 ledger rows, of none', { ledgerRows: 10_000_000 }),
]

function growthPlot(report: Report): Plot {
  const base = reader(report, 'whole-16', cpu)(labelOf(BASE)) ?? Number.NaN
  const { read } = of('', 'whole-16', cpu, 0)
  const values = report.systems.flatMap((system) => {
    const spread = read(system, report)
    if (spread === undefined) return []
    const { median, min, max } = spread
    return [{ point: system.name, median: median / base, min: min / base, max: max / base }]
  })
  const y = { field: 'point', type: 'nominal', sort: null, title: null } as const
  return {
    title: {
      text: 'CPU of a request as things grow',
      subtitle: 'as a multiple of the first point, 16 connections',
    },
    width: 420,
    data: { values },
    layer: [
      {
        mark: { type: 'bar', height: 14, color: '#0072b2' },
        encoding: {
          y: { ...y },
          x: { field: 'median', type: 'quantitative', title: null },
        },
      },
      {
        mark: { type: 'rule' },
        encoding: { y, x: { field: 'min', type: 'quantitative' }, x2: { field: 'max' } },
      },
      { mark: { type: 'rule', strokeDash: [4, 4] }, encoding: { x: { datum: FLAT } } },
    ],
  }
}
