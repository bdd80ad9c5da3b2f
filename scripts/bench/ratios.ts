import { join } from 'node:path'
import { z } from 'zod'
import { Field } from './field.ts'
import { spreadOf } from './figures.ts'
import { startFloor } from './floor.ts'
import type { Report } from './report.ts'
import { startRouter } from './router.ts'
import type { Bench, Suite } from './suite.ts'
import { markdownTable } from './table.ts'
import type { WindowKind } from './windows.ts'

const CUSTOMERS = 100
const FLOOR = 'floor'

/** CPU of a system in one kind of window, as a multiple of the floor's in the same round. */
interface Ratio {
  readonly title: string
  readonly system: string
  readonly kind: WindowKind
}

const RATIOS: readonly Ratio[] = [
  { title: 'request', system: 'router', kind: 'whole-64' },
  { title: 'request, pinned', system: 'router-pinned', kind: 'whole-64' },
  { title: 'frame', system: 'router', kind: 'streams-64' },
  { title: 'frame, pinned', system: 'router-pinned', kind: 'streams-64' },
]

const KINDS: readonly WindowKind[] = ['whole-64', 'streams-64']

/** The factor by which a ratio may exceed the accepted one; less is noise. */
const TOLERANCE = 1.3

/** The accepted ratios, by title. */
export const acceptedRatiosSchema = z.object({
  takenAt: z.string(),
  ratios: z.record(z.string(), z.number().positive()),
})

export type AcceptedRatios = z.output<typeof acceptedRatiosSchema>

/**
 * Measures the router's CPU as multiples of the floor's, in short interleaved rounds; takes about two and a half
 * minutes.
 */
export function ratios(bench: Bench): Suite {
  return {
    options: '--ratios',
    extent: { rounds: 5, stretch: 0.5, kinds: KINDS },
    fields: [() => startField(bench)],
  }
}

async function startField({ mock, scratch }: Bench): Promise<Field> {
  const field = new Field()
  const part = { sizes: false, kinds: KINDS }
  await field.enter(FLOOR, () => startFloor(mock.address, scratch), part)
  const router = await startRouter({
    mock: mock.address,
    directory: join(scratch, 'ratios'),
    customers: CUSTOMERS,
    size: { furtherRoutes: 0 },
  })
  field.endsWith(() => router.stop())
  if (router.chip !== undefined) mock.attest(router.chip)
  await field.enter('router', async () => router.system('router', CUSTOMERS, false), part)
  const pinned = async () => router.system('router-pinned', CUSTOMERS, true)
  await field.enter('router-pinned', pinned, part)
  return field
}

/** The median over the rounds of each ratio; undefined when no round has a valid window of both systems. */
export function ratiosOf({ systems }: Report): Readonly<Record<string, number | undefined>> {
  const windowsOf = (name: string, kind: WindowKind) =>
    systems.find((system) => system.name === name)?.windows[kind] ?? []
  return Object.fromEntries(
    RATIOS.map(({ title, system, kind }) => {
      const floor = windowsOf(FLOOR, kind)
      const rounds = windowsOf(system, kind).map((window, round) => {
        const beside = floor[round]
        const counts = window.invalid === null && beside?.invalid === null
        return counts ? window.cpuUs / beside.cpuUs : Number.NaN
      })
      return [title, spreadOf(rounds)?.median]
    }),
  )
}

/**
 * The regressions: every ratio that is more than 30 percent above the accepted one, or missing, in all of the runs. One
 * run may be an outlier because of other work on the machine; a regression shows in all of them.
 */
export function regressionsOf(
  runs: readonly Readonly<Record<string, number | undefined>>[],
  { ratios: accepted }: AcceptedRatios,
): readonly string[] {
  return Object.entries(accepted).flatMap(([title, bound]) => {
    const measured = runs.map((run) => run[title]).filter((ratio) => ratio !== undefined)
    if (measured.length === 0) return [`${title}: no valid window`]
    const least = Math.min(...measured)
    if (least <= bound * TOLERANCE) return []
    return [`${title}: ${least.toFixed(2)} times the floor, accepted are ${bound.toFixed(2)}`]
  })
}

/** The ratios as a table in Markdown. */
export function ratioTable(found: Readonly<Record<string, number | undefined>>): string {
  const rows = Object.entries(found).map(([title, ratio]) => [title, ratio?.toFixed(2) ?? '-'])
  return markdownTable(['CPU, of the floor', 'ratio'], rows)
}
