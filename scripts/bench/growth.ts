import { join } from 'node:path'
import { WHOLE } from './behaviours.ts'
import { addLedgerRows } from './ledger-rows.ts'
import type { LoadGenerator } from './load.ts'
import { measure, type Sample } from './measure.ts'
import type { Mock } from './mock.ts'
import { startRouter } from './router.ts'
import type { Tell } from './run.ts'
import { markdownTable } from './table.ts'

/** What the router is made to carry. */
export interface GrowthPoint {
  readonly furtherRoutes: number
  readonly customers: number
  readonly ledgerRows: number
  readonly tools: number
}

export interface MeasuredPoint extends GrowthPoint {
  readonly at1: Sample
  readonly at16: Sample
}

export interface GrowthPlan {
  readonly mock: Mock
  readonly load: LoadGenerator
  readonly scratch: string
  readonly full: boolean
  readonly tell: Tell
}

const BASE: GrowthPoint = { furtherRoutes: 10, customers: 1, ledgerRows: 0, tools: 0 }

/** One thing grows at a time. */
function pointsOf(full: boolean): readonly GrowthPoint[] {
  return [
    BASE,
    { ...BASE, furtherRoutes: 1_000 },
    { ...BASE, furtherRoutes: 10_000 },
    { ...BASE, customers: full ? 10_000 : 100 },
    { ...BASE, ledgerRows: full ? 1_000_000 : 10_000 },
    { ...BASE, tools: 1 },
    { ...BASE, tools: 10 },
  ]
}

const TOOL_BYTES = 50 * 1024

/** Measures every point on a router of its own. */
export async function measureGrowth(plan: GrowthPlan): Promise<readonly MeasuredPoint[]> {
  const measured: MeasuredPoint[] = []
  for (const point of pointsOf(plan.full)) {
    plan.tell(`measuring ${labelOf(point)}`)
    measured.push(await measurePoint(point, plan))
  }
  return measured
}

async function measurePoint(point: GrowthPoint, plan: GrowthPlan): Promise<MeasuredPoint> {
  const { mock, load, scratch } = plan
  const router = await startRouter({
    mock: mock.address,
    directory: join(scratch, 'router'),
    customers: point.customers,
    size: point,
  })
  try {
    const [customerId] = router.customerIds
    if (point.ledgerRows > 0 && customerId !== undefined) {
      await router.restarted(() => addLedgerRows(router.storageDir, customerId, point.ledgerRows))
    }
    const system = router.system('router', point.customers, false)
    const tools = toolsOf(point.tools)
    const window = { behaviour: WHOLE, tools, stream: false, once: false, windowMs: 2_000 }
    await measure(system, { ...window, connections: 16, warmMs: 3_000 }, load)
    return {
      ...point,
      at1: await measure(system, { ...window, connections: 1, warmMs: 300 }, load),
      at16: await measure(system, { ...window, connections: 16, warmMs: 300 }, load),
    }
  } finally {
    await router.stop()
  }
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

const count = (value: number) => value.toLocaleString('en')

function labelOf({ furtherRoutes, customers, ledgerRows, tools }: GrowthPoint): string {
  return `${count(furtherRoutes)} routes, ${count(customers)} customers, ${count(ledgerRows)} rows, ${tools} tools`
}

/** The points as a table in Markdown. */
export function growthTable(points: readonly MeasuredPoint[]): string {
  const rows = points.map((point) => [
    labelOf(point),
    point.at1.invalid ?? point.at1.p50Ms.toFixed(2),
    point.at16.invalid ?? point.at16.perSecond.toFixed(0),
    point.at16.cpuUs.toFixed(0),
    point.at16.residentMib.toFixed(0),
  ])
  const head = ['', 'p50 at 1, ms', 'requests/s at 16', 'CPU per request, us', 'memory, MiB']
  return markdownTable(head, rows)
}
