import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import { batchers } from './bench/batchers.ts'
import { missingDatabase } from './bench/database.ts'
import { doors } from './bench/doors.ts'
import { comparison } from './bench/comparison.ts'
import { growth } from './bench/growth.ts'
import { LoadGenerator } from './bench/load.ts'
import { Mock } from './bench/mock.ts'
import { acceptedRatiosSchema, ratios, ratiosOf, regressionsOf } from './bench/ratios.ts'
import type { Report } from './bench/report.ts'
import { runSuite, type Bench, type Suite } from './bench/suite.ts'
import { OtherWork } from './bench/other-work.ts'
import { severalWorkers } from './bench/workers.ts'
import { checkRuntime } from '../src/host/stack/runtime-check.ts'

/**
 * `npm run bench`: the router beside a bare pass-through and a peer, with one mock provider and one load generator.
 * Everything it starts and installs is in a scratch folder and is removed at the end.
 */
const program = new Command('bench')
  .description('measure the router beside a bare pass-through and a peer')
  .option('--quick', 'one short round, without the 512 streams')
  .option('--growth', 'how cost grows with routes, customers, ledger rows and tools instead')
  .option('--workers <n>', 'the router on PostgreSQL with 1 and with n workerd instead', severalOf)
  .option('--doors', 'the front doors of one router beside its chat door instead')
  .option('--batchers', 'the router without each of its batchers instead')
  .option(
    '--ratios',
    'fail if CPU of the router, as a multiple of the floor, is 30 percent above the accepted',
  )
  .option('--accept', 'with --ratios: accept what is measured')
  .option('--out <folder>', 'where the JSON and the plots go', 'docs/performance')
  .option('--scratch <folder>', 'where state is kept while it runs', tmpdir())
  .action(run)

/** More would need more connections than the server takes. */
const MAX_WORKERS = 7

interface Options {
  readonly quick?: true
  readonly growth?: true
  readonly workers?: number
  readonly doors?: true
  readonly batchers?: true
  readonly ratios?: true
  readonly accept?: true
  readonly out: string
  readonly scratch: string
}

function severalOf(text: string): number {
  const workers = Number(text)
  if (Number.isInteger(workers) && workers >= 2 && workers <= MAX_WORKERS) return workers
  throw new InvalidArgumentError(`give a number from 2 to ${MAX_WORKERS}`)
}

async function run(options: Options): Promise<void> {
  checkRuntime()
  const missing = options.workers === undefined ? undefined : missingDatabase()
  if (missing !== undefined) return console.error(`skipped PostgreSQL: ${missing}`)
  const scratch = mkdtempSync(join(resolve(options.scratch), 'cmr-bench-'))
  // A database server runs as another user and has its files there.
  chmodSync(scratch, 0o711)
  // The started processes end with this one in any case.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  process.once('exit', () => rmSync(scratch, { recursive: true, force: true, maxRetries: 9 }))
  const mock = await Mock.start()
  const load = new LoadGenerator()
  const bench = { quick: options.quick ?? false, mock, load, scratch, log: console.error }
  try {
    if (options.ratios) return await compareRatios(bench, options.accept === true)
    const suite = suiteOf(options, bench)
    publish(suite, await runSuite(suite, bench), options.out)
  } finally {
    await load.stop()
    await mock.stop()
  }
}

function suiteOf(options: Options, bench: Bench): Suite {
  const { workers } = options
  if (options.doors) return doors(bench)
  if (options.batchers) return batchers(bench)
  if (workers !== undefined) return severalWorkers(bench, workers)
  return options.growth ? growth(bench) : comparison(bench)
}

/** Beside more other work than this, shared calls are smaller and caches colder, and a ratio says nothing. */
const MAX_OTHER_SHARE = 0.15

/** How a step tells CI that it was skipped. */
const NOTHING_TO_CHECK_WITH = 77

const ACCEPTED_RATIOS = new URL('../docs/performance/ratios.json', import.meta.url)

/** Measures again where something seems to have become worse, because other work on the machine disturbs one run. */
async function compareRatios(bench: Bench, accept: boolean): Promise<void> {
  const suite = ratios(bench)
  const others = new OtherWork(performance.now())
  const measureOnce = async () => {
    const report = await runSuite(suite, bench)
    console.log(suite.show(report))
    return ratiosOf(report)
  }
  const first = await measureOnce()
  if (accept) {
    const accepted = { takenAt: new Date().toISOString(), ratios: first }
    return writeFileSync(ACCEPTED_RATIOS, `${JSON.stringify(accepted, null, 2)}\n`)
  }
  const accepted = acceptedRatiosSchema.parse(JSON.parse(readFileSync(ACCEPTED_RATIOS, 'utf8')))
  if (regressionsOf([first], accepted).length === 0) return
  const regressions = regressionsOf([first, await measureOnce()], accepted)
  const share = others.share(performance.now())
  if (regressions.length > 0 && share > MAX_OTHER_SHARE) {
    console.log(`skipped: other work took ${(share * 100).toFixed(0)} percent of the processors`)
    return process.exit(NOTHING_TO_CHECK_WITH)
  }
  for (const regression of regressions) console.error(`regression: ${regression}`)
  if (regressions.length > 0) process.exitCode = 1
}

function publish({ name, show, plots }: Suite, report: Report, out: string): void {
  mkdirSync(out, { recursive: true })
  writeFileSync(join(out, `${name}.json`), `${JSON.stringify(report, null, 2)}\n`)
  for (const [file, svg] of plots(report)) writeFileSync(join(out, file), svg)
  console.log(show(report))
}

await program.parseAsync()
process.exit()
