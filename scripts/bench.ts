import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Command } from 'commander'
import { startField } from './bench/entrants.ts'
import { growthTable, measureGrowth } from './bench/growth.ts'
import { LoadGenerator } from './bench/load.ts'
import { Mock } from './bench/mock.ts'
import { plotsOf } from './bench/plot.ts'
import type { Report } from './bench/report.ts'
import { runAll } from './bench/run.ts'
import { figureTable } from './bench/table.ts'
import { targetTable } from './bench/targets.ts'
import { FULL, QUICK } from './bench/windows.ts'
import { checkRuntime } from './stack/runtime-check.ts'

/**
 * `npm run bench`: the router beside a bare pass-through and a peer, with one mock provider and one load
 * generator. Everything it starts and installs is in a scratch folder and ends with it.
 */
const program = new Command('bench')
  .description('measure the router beside a bare pass-through and a peer')
  .option('--quick', 'one short round, without the 512 streams')
  .option('--growth', 'how cost grows with routes, customers, ledger rows and tools instead')
  .option('--out <folder>', 'where the JSON and the plots go', 'docs/performance')
  .option('--scratch <folder>', 'where state is kept while it runs', tmpdir())
  .action(run)

interface Options {
  readonly quick?: true
  readonly growth?: true
  readonly out: string
  readonly scratch: string
}

async function run({ quick, growth, out, scratch: parent }: Options): Promise<void> {
  checkRuntime()
  const scratch = mkdtempSync(join(resolve(parent), 'cmr-bench-'))
  const mock = await Mock.start()
  const load = new LoadGenerator()
  try {
    mkdirSync(out, { recursive: true })
    if (growth) {
      const points = await measureGrowth({ mock, load, scratch, full: !quick, tell: console.error })
      writeFileSync(join(out, 'growth.json'), `${JSON.stringify(points, null, 2)}\n`)
      console.log(growthTable(points))
    } else publish(await compare({ quick: quick ?? false, mock, load, scratch }), out)
  } finally {
    await load.stop()
    await mock.stop()
    rmSync(scratch, { recursive: true, force: true })
  }
}

interface Bench {
  readonly quick: boolean
  readonly mock: Mock
  readonly load: LoadGenerator
  readonly scratch: string
}

async function compare({ quick, mock, load, scratch }: Bench): Promise<Report> {
  const [loadBefore = 0] = loadavg()
  const field = await startField(mock, scratch)
  try {
    for (const { name, reason } of field.skipped) console.error(`skipped ${name}: ${reason}`)
    const systems = await runAll(field.entrants, quick ? QUICK : FULL, load, console.error)
    const [loadAfter = 0] = loadavg()
    const [cpu] = cpus()
    return {
      takenAt: new Date().toISOString(),
      command: `npm run bench${quick ? ' -- --quick' : ''}`,
      machine: { cores: cpus().length, cpu: cpu?.model ?? '', loadBefore, loadAfter },
      systems,
      skipped: [...field.skipped],
    }
  } finally {
    await field.stop()
  }
}

function publish(report: Report, out: string): void {
  writeFileSync(join(out, 'bench.json'), `${JSON.stringify(report, null, 2)}\n`)
  for (const [file, svg] of plotsOf(report)) writeFileSync(join(out, file), svg)
  console.log(`${figureTable(report)}\n\n${targetTable(report)}`)
}

await program.parseAsync()
process.exit(0)
