import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import { BATCHERS, batchers } from './bench/batchers.ts'
import { COMPARISON, comparison } from './bench/comparison.ts'
import { GROWTH, growth } from './bench/growth.ts'
import { LoadGenerator } from './bench/load.ts'
import { Mock } from './bench/mock.ts'
import { figuresOf, showReport } from './bench/page.ts'
import {
  acceptedRatiosSchema,
  ratios,
  ratiosOf,
  ratioTable,
  regressionsOf,
} from './bench/ratios.ts'
import { reportSchema } from './bench/report.ts'
import { runSuite, type Bench, type Exhibit, type Suite } from './bench/suite.ts'
import { OtherWork } from './bench/other-work.ts'
import { severalWorkers, WORKERS } from './bench/workers.ts'
import { checkRuntime } from '../src/host/stack/runtime-check.ts'

/**
 * `npm run bench`: measures the router, a bare pass-through and a peer with the same mock provider and load generator.
 * Everything that it starts and installs is in a scratch folder, which is removed at the end.
 */
const program = new Command('bench')
  .description('measure the router beside a bare pass-through and a peer')
  .option('--quick', 'one short round, without the 512 streams')
  .option('--growth', 'how cost grows with routes, customers, ledger rows and tools instead')
  .option(
    '--workers <n>',
    'the router with 1 and with n workerd, on both engines, instead',
    severalOf,
  )
  .option('--batchers', 'the router without each of its batchers instead')
  .option(
    '--ratios',
    'fail if CPU of the router, as a multiple of the floor, is 30 percent above the accepted',
  )
  .option('--accept', 'with --ratios: accept what is measured')
  .option('--render', 'measure nothing: show again what was measured before')
  .option(
    '--out <folder>',
    'where the JSON and the plots go; a page of the same name gets the figures',
    'docs/performance',
  )
  .option('--scratch <folder>', 'where state is kept while it runs', tmpdir())
  .action(run)

/** More workers would need more connections than the PostgreSQL server accepts. */
const MAX_WORKERS = 7

interface Options {
  readonly quick?: true
  readonly growth?: true
  readonly workers?: number
  readonly batchers?: true
  readonly ratios?: true
  readonly accept?: true
  readonly render?: true
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
  if (options.render) return renderAgain(options.out)
  const scratch = mkdtempSync(join(resolve(options.scratch), 'cmr-bench-'))
  // The database server runs as another user and must reach its files below this folder.
  chmodSync(scratch, 0o711)
  // Child processes exit when this process does.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  process.once('exit', () => rmSync(scratch, { recursive: true, force: true, maxRetries: 9 }))
  const mock = await Mock.start()
  const load = new LoadGenerator()
  const bench = { quick: options.quick ?? false, mock, load, scratch, log: console.error }
  try {
    if (options.ratios) return await compareRatios(bench, options.accept === true)
    const { exhibit, suite } = chosen(options, bench)
    const report = await runSuite(suite, bench)
    console.log(figuresOf(report, exhibit.sections(report)))
    mkdirSync(options.out, { recursive: true })
    writeFileSync(fileOf(exhibit, options.out), `${JSON.stringify(report, null, 2)}\n`)
    await showReport(exhibit, report, options.out)
  } finally {
    await load.stop()
    await mock.stop()
  }
}

function chosen(
  options: Options,
  bench: Bench,
): { readonly exhibit: Exhibit; readonly suite: Suite } {
  const { workers } = options
  if (options.batchers) return { exhibit: BATCHERS, suite: batchers(bench) }
  if (workers !== undefined) return { exhibit: WORKERS, suite: severalWorkers(bench, workers) }
  if (options.growth) return { exhibit: GROWTH, suite: growth(bench) }
  return { exhibit: COMPARISON, suite: comparison(bench) }
}

const fileOf = ({ name }: Exhibit, out: string) => join(out, `${name}.json`)

/** Redraws the plots and rewrites the tables of every report in the folder, without measuring. */
async function renderAgain(out: string): Promise<void> {
  for (const exhibit of [COMPARISON, GROWTH, WORKERS, BATCHERS]) {
    const file = fileOf(exhibit, out)
    if (!existsSync(file)) continue
    await showReport(exhibit, reportSchema.parse(JSON.parse(readFileSync(file, 'utf8'))), out)
  }
}

/**
 * The largest share of CPU that other work may use. Above it, batches are smaller and caches colder, so ratios mean
 * nothing.
 */
const MAX_OTHER_SHARE = 0.15

/** The exit status that tells CI that a step was skipped. */
const NOTHING_TO_CHECK_WITH = 77

const ACCEPTED_RATIOS = new URL('../docs/performance/ratios.json', import.meta.url)

/**
 * Measures again when a ratio seems to have become worse, because other work on the machine may have disturbed one run.
 */
async function compareRatios(bench: Bench, accept: boolean): Promise<void> {
  const suite = ratios(bench)
  const others = new OtherWork(performance.now())
  const measureOnce = async () => {
    const report = await runSuite(suite, bench)
    console.log(ratioTable(ratiosOf(report)))
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

await program.parseAsync()
process.exit()
