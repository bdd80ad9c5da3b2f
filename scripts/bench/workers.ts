import { join } from 'node:path'
import { startDatabase } from './database.ts'
import { Field } from './field.ts'
import { startFloor } from './floor.ts'
import type { Report } from './report.ts'
import { startRouter } from './router.ts'
import type { Bench, Suite } from './suite.ts'
import { DATABASE, FRONT } from './system.ts'
import { figureTable, of, partOf, type Figure } from './table.ts'
import { FULL, QUICK, WHOLE_KINDS } from './windows.ts'

const CUSTOMERS = 100

const FIGURES: readonly Figure[] = [
  of('requests/s at 1', 'whole-1', ({ perSecond }) => perSecond, 0),
  of('requests/s at 16', 'whole-16', ({ perSecond }) => perSecond, 0),
  of('requests/s at 64', 'whole-64', ({ perSecond }) => perSecond, 0),
  of('p50 at 1, ms', 'whole-1', ({ p50Ms }) => p50Ms, 2),
  of('p50 at 64, ms', 'whole-64', ({ p50Ms }) => p50Ms, 1),
  of('p99 at 64, ms', 'whole-64', ({ p99Ms }) => p99Ms, 1),
  of('CPU per request at 1, us', 'whole-1', ({ cpuUs }) => cpuUs, 0),
  of('CPU per request at 64, us', 'whole-64', ({ cpuUs }) => cpuUs, 0),
  ...['workerd', 'daemon', FRONT, DATABASE].map((group) => partOf(group, 'whole-64')),
  of(`memory at 64 without ${DATABASE}, MiB`, 'whole-64', ({ residentMib }) => residentMib, 0),
]

/** The router on PostgreSQL with one workerd process and with several behind the same sockets. */
export function severalWorkers(bench: Bench, workers: number): Suite {
  return {
    name: 'workers',
    options: `--workers ${workers}`,
    extent: { ...(bench.quick ? QUICK : FULL), kinds: WHOLE_KINDS },
    fields: [() => startField(bench, workers)],
    show: workersTable,
    plots: () => new Map(),
  }
}

/** The figures as a Markdown table, with CPU by part. */
export function workersTable(report: Report): string {
  return figureTable(report, FIGURES)
}

async function startField(bench: Bench, most: number): Promise<Field> {
  const { mock, scratch } = bench
  const field = new Field()
  const part = { memory: false, streams: false }
  if (process.env['DATABASE_URL']) bench.log('the CPU of the server of DATABASE_URL is not counted')
  await field.enter('floor', () => startFloor(mock.address, scratch), part)
  for (const workers of [1, most]) {
    const name = `postgres, ${workers} workerd`
    const start = async () => {
      const database = await startDatabase(scratch)
      field.endsWith(() => database.stop())
      const router = await startRouter({
        mock: mock.address,
        directory: join(scratch, `workers-${workers}`),
        customers: CUSTOMERS,
        size: { furtherRoutes: 0 },
        shared: { workers, database },
      })
      field.endsWith(() => router.stop())
      return router.system(name, CUSTOMERS, false)
    }
    await field.enter(name, start, part)
  }
  return field
}
