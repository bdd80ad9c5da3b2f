/** Metrics in the Prometheus text format (exposition format 0.0.4), and their sums over the workers of one host. */

/** A family of counters or histograms, read from its text. */
export interface MetricFamily {
  readonly name: string
  readonly kind: string
  readonly help: string
  /** `name{labels}` to value. */
  readonly samples: Map<string, number>
}

const HELP = /^# HELP (\S+) (.*)$/
const TYPE = /^# TYPE (\S+) (\S+)$/
const SAMPLE = /^(.*) (\S+)$/

/** Reads the output of `Metrics.render`. Other lines are ignored. */
export function readFamilies(text: string): MetricFamily[] {
  const families: MetricFamily[] = []
  let help = ''
  for (const line of text.split('\n')) {
    const [, , told] = HELP.exec(line) ?? []
    const [, name, kind] = TYPE.exec(line) ?? []
    const [, key, value] = SAMPLE.exec(line) ?? []
    if (told !== undefined) help = told
    else if (name !== undefined && kind !== undefined) {
      families.push({ name, kind, help, samples: new Map() })
    } else if (key !== undefined && value !== undefined && Number.isFinite(Number(value))) {
      families.at(-1)?.samples.set(key, Number(value))
    }
  }
  return families
}

/**
 * Adds the same families of several workers, sample by sample.
 * @returns the sums as text
 */
export function addExpositions(texts: readonly string[]): string {
  const sums = new Map<string, MetricFamily>()
  for (const family of texts.flatMap(readFamilies)) {
    const sum = sums.get(family.name) ?? { ...family, samples: new Map<string, number>() }
    sums.set(family.name, sum)
    for (const [key, value] of family.samples) {
      sum.samples.set(key, (sum.samples.get(key) ?? 0) + value)
    }
  }
  return [...sums.values()].map(familyText).join('')
}

function familyText({ name, kind, help, samples }: MetricFamily): string {
  const lines = [...samples].map(([key, value]) => `${key} ${value}`)
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`, ...lines, ''].join('\n')
}
