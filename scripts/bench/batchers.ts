import type { Plugin } from 'esbuild'
import { join } from 'node:path'
import { bundleWorker } from '../../src/host/bundle-worker.ts'
import { Field } from './field.ts'
import { spreadOf } from './figures.ts'
import type { Report, SystemReport } from './report.ts'
import { startRouter } from './router.ts'
import { section } from './page.ts'
import type { Bench, Exhibit, Suite } from './suite.ts'
import { invalidText, markdownTable, spreadText } from './table.ts'
import { FULL, QUICK, type WindowKind } from './windows.ts'

/** A variant of the router, and the files whose batchers are disabled in it. */
interface Variant {
  readonly name: string
  /** Path suffixes of the files that create the disabled batchers. */
  readonly without: readonly string[]
}

const COALESCER = 'batching/coalescer.ts'
const SIGNING = 'link/batched-signing.ts'
const STORAGE = 'storage/batched-storage.ts'

/** The unchanged router comes first: the others are compared with it. */
const VARIANTS: readonly Variant[] = [
  { name: 'all batchers', without: [] },
  { name: 'settlements not coalesced', without: [COALESCER] },
  { name: 'signatures not batched', without: [SIGNING] },
  { name: 'storage not batched', without: [STORAGE] },
  { name: 'only settlements coalesced', without: [SIGNING, STORAGE] },
  { name: 'no batchers', without: [COALESCER, SIGNING, STORAGE] },
]

const KINDS: readonly WindowKind[] = ['whole-1', 'whole-16', 'whole-64']
const ROUNDS = 5
const CUSTOMERS = 100

export const BATCHERS: Exhibit = {
  name: 'batchers',
  sections: (report) => [section('CPU without batchers', [], batchersTable(report))],
  plots: () => ({}),
}

/** Measures what each batcher of the worker saves: CPU per request with and without it, in interleaved rounds. */
export function batchers(bench: Bench): Suite {
  return {
    options: '--batchers',
    extent: { ...(bench.quick ? QUICK : FULL), rounds: ROUNDS, kinds: KINDS },
    fields: [() => startField(bench)],
  }
}

async function startField({ mock, scratch, log }: Bench): Promise<Field> {
  const field = new Field()
  for (const { name, without } of VARIANTS) {
    log(`starting the router: ${name}`)
    const directory = join(scratch, name.replaceAll(' ', '-'))
    const start = async () => {
      const router = await startRouter({
        mock: mock.address,
        directory,
        customers: CUSTOMERS,
        size: { furtherRoutes: 0 },
        writeWorker: (outFile) => bundleWorker(outFile, [withoutBatchers(without)]),
      })
      field.endsWith(() => router.stop())
      return router.system(name, CUSTOMERS, false)
    }
    await field.enter(name, start, { sizes: false, kinds: KINDS })
  }
  return field
}

/** A batcher that sends each item by itself. */
const UNBATCHED = `const alone = (_host, { run }) => async (item) => (await run([item]))[0]
export { alone as createBatcher, alone as createMomentBatcher }`

/** Replaces both kinds of batchers in the files with these path suffixes. */
function withoutBatchers(importers: readonly string[]): Plugin {
  return {
    name: 'without-batchers',
    setup(build) {
      build.onResolve({ filter: /\/(?:moment-)?batcher\.ts$/ }, ({ importer }) =>
        importers.some((end) => importer.endsWith(`worker/${end}`))
          ? { path: 'unbatched', namespace: 'unbatched' }
          : undefined,
      )
      build.onLoad({ filter: /./, namespace: 'unbatched' }, () => ({ contents: UNBATCHED }))
    },
  }
}

/** CPU of each variant, and its ratio to the unchanged router, round by round. */
export function batchersTable(report: Report): string {
  const [asIs] = report.systems
  const rows = report.systems.map((system) => [
    system.name,
    ...KINDS.flatMap((kind) => [
      spreadText(spreadOf(cpuOf(system, kind)), 0),
      spreadText(spreadOf(ratios(system, asIs, kind)), 2),
    ]),
    invalidText(system),
  ])
  const titles = KINDS.flatMap((kind) => [`CPU at ${kind}, us`, 'of all batchers'])
  return markdownTable(['', ...titles, 'invalid windows'], rows)
}

/** CPU per request in each round, us; NaN where the window is invalid. */
function cpuOf({ windows }: SystemReport, kind: WindowKind): readonly number[] {
  return (windows[kind] ?? []).map(({ cpuUs, invalid }) => (invalid === null ? cpuUs : Number.NaN))
}

function ratios(
  system: SystemReport,
  asIs: SystemReport | undefined,
  kind: WindowKind,
): readonly number[] {
  const base = asIs === undefined ? [] : cpuOf(asIs, kind)
  return cpuOf(system, kind).map((cpuUs, round) => cpuUs / (base[round] ?? Number.NaN))
}
