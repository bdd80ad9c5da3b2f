import { medianMib, peakOf, type Sample } from './process-watch.ts'

const HEADS = ['start', '1st', '2nd', '3rd', '4th', 'peak', 'files', 'peak']

/** The table of what each process took: memory (MiB, the median of each quarter) and open files, as lines. */
export function processTable(processes: ReadonlyMap<string, readonly Sample[]>): string[] {
  return [
    row('MiB, by quarters', HEADS),
    ...[...processes].map(([name, samples]) => row(name, figuresOf(samples))),
  ]
}

function figuresOf(samples: readonly Sample[]): readonly number[] {
  const end = samples.at(-1)?.at ?? 0
  const quarters = [0, 1, 2, 3].map((index) =>
    medianMib(samples, (index * end) / 4, ((index + 1) * end) / 4),
  )
  const [first] = samples
  return [
    first?.rssMib ?? 0,
    ...quarters,
    peakOf(samples, 'rssMib'),
    first?.descriptors ?? 0,
    peakOf(samples, 'descriptors'),
  ]
}

function row(name: string, cells: readonly (string | number)[]): string {
  return name.padEnd(18) + cells.map((cell) => String(cell).padStart(7)).join('')
}
