import { join } from 'node:path'
import { missingDatabase, startDatabase } from './database.ts'
import { Field } from './field.ts'
import { startFloor } from './floor.ts'
import { startLedgerAlone } from './ledger-alone.ts'
import { busyWriterUs, ledgerAloneTable } from './ledger-alone-table.ts'
import { leastOf, limitsOf, moreCoresTable } from './more-cores.ts'
import { section } from './page.ts'
import { installPortkey, PORTKEY_ON_NODE, startPortkeyOnNode } from './portkey.ts'
import type { Report } from './report.ts'
import { startRouter } from './router.ts'
import type { Bench, Exhibit, Suite } from './suite.ts'
import { DATABASE, LEDGER, type System } from './system.ts'
import { beside, cpuOfFloor, FLOOR, of, partsOf, systemTable, type Figure } from './table.ts'
import { absolute, cpu, medianBeside, rate, reader, targetTable, type Target } from './targets.ts'
import { FULL, LEDGER_KIND, QUICK, WHOLE_KINDS } from './windows.ts'

const CUSTOMERS = 100

type Engine = 'durable-object' | 'sqlite' | 'postgres'

/** The compared variants; `most` is the number of workers on engines that allow several. */
function variants(most: number): readonly (readonly [engine: Engine, workers: number])[] {
  return [
    ['durable-object', 1],
    ['sqlite', 1],
    ['sqlite', most],
    ['postgres', 1],
    ['postgres', most],
  ]
}

const nameOf = (engine: Engine, workers: number) => `${engine}, ${workers} workerd`

const RATES: readonly Figure[] = [
  of('requests/s at 1', 'whole-1', rate, 0),
  of('requests/s at 16', 'whole-16', rate, 0),
  of('requests/s at 64', 'whole-64', rate, 0),
  of('p50 at 1, ms', 'whole-1', ({ p50Ms }) => p50Ms, 2),
  of('p50 at 64, ms', 'whole-64', ({ p50Ms }) => p50Ms, 1),
  of('p99 at 64, ms', 'whole-64', ({ p99Ms }) => p99Ms, 1),
  of(`memory at 64 without ${DATABASE}, MiB`, 'whole-64', ({ residentMib }) => residentMib, 0),
]

const WORKERS_TARGETS: readonly Target[] = [
  ofOne('CPU per request, us', cpu, 1_200),
  ofOne('CPU per request of the worker, us', ({ cpuUsBy }) => cpuUsBy['workerd'] ?? NaN, 700),
  ofOne('CPU per request of the server, us', ({ cpuUsBy }) => cpuUsBy[DATABASE] ?? NaN, 350),
  {
    title: 'postgres, the better of both: requests/s at 64',
    atLeast: 1_000,
    measure: (report) => {
      const read = reader(report, 'whole-64', rate)
      const rates = report.systems.flatMap(({ name }) =>
        name.startsWith('postgres') ? (read(name) ?? []) : [],
      )
      return rates.length === 0 ? undefined : Math.max(...rates)
    },
  },
  {
    title: 'sqlite, most workers: CPU per request of the ledger, us',
    atMost: 60,
    measure: (report) => {
      const read = reader(report, 'whole-64', ({ cpuUsBy }) => cpuUsBy[LEDGER] ?? Number.NaN)
      return read(mostWorkers(report))
    },
  },
  rateOfMost('of the floor', FLOOR, 0.4),
  rateOfMost('of Portkey on Node', PORTKEY_ON_NODE, 1),
  {
    title: 'sqlite, most workers: requests/s on 16 cores, computed below',
    atLeast: 12_000,
    measure: (report) => leastOf(limitsOf(report, mostWorkers(report), 'whole-64')),
  },
]

/** A target: requests/s with the most workers on a shared embedded ledger, as a multiple of another system's. */
function rateOfMost(what: string, other: string, atLeast: number): Target {
  const figure = beside('', 'whole-64', other, (own, its) => rate(own) / rate(its))
  const measure = (report: Report) => medianBeside(report, mostWorkers(report), figure)
  return { title: `sqlite, most workers: requests/s at 64, ${what}`, atLeast, measure }
}

/** The system with the most workers on one embedded ledger. */
function mostWorkers({ systems }: Report): string {
  return systems.findLast(({ name }) => name.startsWith('sqlite'))?.name ?? ''
}

/** A target for the router with one worker on PostgreSQL. */
function ofOne(title: string, figure: Parameters<typeof absolute>[2], atMost: number): Target {
  const system = nameOf('postgres', 1)
  return absolute(`${system}: ${title}`, 'whole-64', figure, system, { atMost })
}

export const WORKERS: Exhibit = {
  name: 'workers',
  sections: (report) => [
    section(
      'Several workers',
      [],
      targetTable(report, WORKERS_TARGETS),
      systemTable(report, RATES),
      systemTable(report, [
        of('CPU per request at 64, us', 'whole-64', cpu, 0),
        cpuOfFloor('of the floor', 'whole-64'),
        ...partsOf(report, 'whole-64'),
      ]),
    ),
    ...(busyWriterUs(report) === undefined
      ? []
      : [section('The ledger alone, as busy as it can be', [], ledgerAloneTable(report))]),
    section('More cores, computed', [], moreCoresTable(report, mostWorkers(report), 'whole-64')),
  ],
  plots: () => ({}),
}

/** Measures the router with one workerd process and with several behind the same sockets, on each engine. */
export function severalWorkers(bench: Bench, workers: number): Suite {
  return {
    options: `--workers ${workers}`,
    extent: { ...(bench.quick ? QUICK : FULL), kinds: [...WHOLE_KINDS, LEDGER_KIND] },
    fields: [() => startField(bench, workers)],
  }
}

async function startField(bench: Bench, most: number): Promise<Field> {
  const { mock, scratch } = bench
  const field = new Field()
  const part = { sizes: false, kinds: WHOLE_KINDS }
  if (process.env['DATABASE_URL']) bench.log('the CPU of the server of DATABASE_URL is not counted')
  await field.enter(FLOOR, () => startFloor(mock.address, scratch), part)
  for (const [engine, workers] of variants(most)) {
    const start = () => startSystem(engine, workers, field, bench)
    await field.enter(nameOf(engine, workers), start, part)
  }
  const peer = async () => startPortkeyOnNode(mock.address, await installPortkey(scratch))
  await field.enter(PORTKEY_ON_NODE, peer, part)
  await enterLedger(field, bench)
  return field
}

/** Added without a check that it serves chat, because a ledger does not. */
async function enterLedger(field: Field, { scratch }: Bench): Promise<void> {
  const ledger = await startLedgerAlone(scratch, CUSTOMERS)
  field.endsWith(() => ledger.stop())
  field.add(ledger, { sizes: false, kinds: [LEDGER_KIND] })
}

async function startSystem(
  engine: Engine,
  workers: number,
  field: Field,
  { mock, scratch }: Bench,
): Promise<System> {
  const router = await startRouter({
    mock: mock.address,
    directory: join(scratch, `${engine}-${workers}`),
    customers: CUSTOMERS,
    size: { furtherRoutes: 0 },
    workers,
    ...(engine === 'postgres'
      ? { database: await openDatabase(field, scratch) }
      : { storage: engine }),
  })
  field.endsWith(() => router.stop())
  return router.system(nameOf(engine, workers), CUSTOMERS, false)
}

async function openDatabase(field: Field, scratch: string) {
  const missing = missingDatabase()
  if (missing !== undefined) throw new Error(missing)
  const database = await startDatabase(scratch)
  field.endsWith(() => database.stop())
  return database
}
