/** One line of the Prometheus text format. */
export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const LINE = /^(\w+)(?:\{(.*)\})? (\S+)$/
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g

/** The samples of a scrape (exposition format 0.0.4); comments and other lines are ignored. */
export function readSamples(text: string): Sample[] {
  return text.split('\n').flatMap((line) => {
    const [, name = '', labels = '', value] = LINE.exec(line) ?? []
    const number = value === '+Inf' ? Infinity : Number(value)
    if (name === '' || Number.isNaN(number)) return []
    return [{ name, labels: readLabels(labels), value: number }]
  })
}

function readLabels(text: string): Record<string, string> {
  const pairs = [...text.matchAll(LABEL)].map(([, name = '', value = '']) => [
    name,
    value.replaceAll(/\\(.)/g, (_all, char: string) => (char === 'n' ? '\n' : char)),
  ])
  return Object.fromEntries(pairs)
}

/** The sum of the samples with this name whose labels match. */
export function sumOf(
  samples: readonly Sample[],
  name: string,
  matches: (labels: Sample['labels']) => boolean = () => true,
): number {
  return samples
    .filter((sample) => sample.name === name && matches(sample.labels))
    .reduce((sum, { value }) => sum + value, 0)
}

/**
 * A percentile of the values that a histogram counted between two scrapes, in seconds: the upper bound of its bucket,
 * so only as exact as the buckets. Undefined where nothing was counted.
 */
export function percentileBetween(
  before: readonly Sample[],
  after: readonly Sample[],
  name: string,
  fraction: number,
): number | undefined {
  const counts = new Map<number, number>()
  for (const [samples, sign] of [
    [before, -1],
    [after, 1],
  ] as const) {
    for (const { name: of, labels, value } of samples) {
      if (of !== `${name}_bucket`) continue
      const bound = labels['le'] === '+Inf' ? Infinity : Number(labels['le'])
      counts.set(bound, (counts.get(bound) ?? 0) + sign * value)
    }
  }
  const bounds = [...counts.keys()].toSorted((left, right) => left - right)
  const total = counts.get(Infinity) ?? 0
  if (total <= 0) return undefined
  const found = bounds.find((bound) => (counts.get(bound) ?? 0) >= total * fraction)
  return found === undefined || found === Infinity ? bounds.at(-2) : found
}
