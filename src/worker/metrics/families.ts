/**
 * Counters and histograms in the Prometheus text format (exposition format 0.0.4). The usual client library reads
 * Node's process state and cannot run here.
 */

type Labels = Readonly<Record<string, string | number>>

/** A named metric with values by label. */
interface Family {
  readonly render: () => string
}

/** Maximum number of label combinations of a metric; more are counted together under `overflow`. */
const MAX_SERIES = 2_000

/** A counter, which only increases. */
export class Counter implements Family {
  readonly #name: string
  readonly #help: string
  readonly #series = new Map<string, { readonly labels: Labels; count: number }>()

  constructor(name: string, help: string) {
    this.#name = name
    this.#help = help
  }

  add(labels: Labels, amount = 1): void {
    seriesOf(this.#series, labels, (own) => ({ labels: own, count: 0 })).count += amount
  }

  render(): string {
    const series = [...this.#series.values()]
    const lines = series.map(({ labels, count }) => `${this.#name}${labelText(labels)} ${count}`)
    return familyText(this.#name, 'counter', this.#help, lines)
  }
}

/** A distribution of durations, in seconds. */
export class Histogram implements Family {
  readonly #name: string
  readonly #help: string
  readonly #bounds: readonly number[]
  readonly #series = new Map<string, { readonly counts: number[]; sum: number; labels: Labels }>()

  constructor(name: string, help: string, bounds: readonly number[]) {
    this.#name = name
    this.#help = help
    this.#bounds = bounds
  }

  observe(labels: Labels, seconds: number): void {
    const series = seriesOf(this.#series, labels, (own) => ({
      counts: Array<number>(this.#bounds.length + 1).fill(0),
      sum: 0,
      labels: own,
    }))
    const bucket = this.#bounds.findIndex((bound) => seconds <= bound)
    const index = bucket < 0 ? this.#bounds.length : bucket
    series.counts[index] = (series.counts[index] ?? 0) + 1
    series.sum += seconds
  }

  render(): string {
    const lines = [...this.#series.values()].flatMap(({ counts, sum, labels }) => {
      let below = 0
      const buckets = counts.map((count, index) => {
        below += count
        const le = this.#bounds[index] ?? '+Inf'
        return `${this.#name}_bucket${labelText({ ...labels, le })} ${below}`
      })
      const text = labelText(labels)
      return [...buckets, `${this.#name}_sum${text} ${sum}`, `${this.#name}_count${text} ${below}`]
    })
    return familyText(this.#name, 'histogram', this.#help, lines)
  }
}

/** The text of a family of gauges, whose values are read at the time of the scrape. */
export function gaugeText(
  name: string,
  help: string,
  values: readonly { readonly labels: Labels; readonly value: number }[],
): string {
  const lines = values.map(({ labels, value }) => `${name}${labelText(labels)} ${value}`)
  return familyText(name, 'gauge', help, lines)
}

function familyText(name: string, kind: string, help: string, lines: readonly string[]): string {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`, ...lines, ''].join('\n')
}

function labelText(labels: Labels): string {
  let text = ''
  for (const [name, value] of Object.entries(labels)) {
    text += `${text === '' ? '{' : ','}${name}="${escapeValue(String(value))}"`
  }
  return text === '' ? '' : `${text}}`
}

function escapeValue(value: string): string {
  if (!/[\\"\n]/.test(value)) return value
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

const OVERFLOW: Labels = { overflow: 'true' }

/**
 * The series of these labels; once there are too many series, the shared overflow series. All labels of a metric have the
 * same names in the same order, so their values alone identify a series.
 */
function seriesOf<Series>(
  known: Map<string, Series>,
  labels: Labels,
  make: (labels: Labels) => Series,
): Series {
  const key = keyOf(labels)
  const series = known.get(key)
  if (series !== undefined) return series
  if (known.size >= MAX_SERIES && labels !== OVERFLOW) return seriesOf(known, OVERFLOW, make)
  const made = make(labels)
  known.set(key, made)
  return made
}

function keyOf(labels: Labels): string {
  let key = ''
  for (const name in labels) key += `${labels[name]}\0`
  return key
}
