import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { readFamilies } from '../src/protocol/exposition.ts'
import { HostCounts } from '../src/enclave/telemetry/host-counts.ts'
import { Metrics } from '../src/worker/metrics/metrics.ts'

/** The dashboard and the alert rules are held against the metrics that really exist, and against the operations page. */

const ROOT = join(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

const dashboard = z
  .object({
    panels: z.array(
      z.object({ title: z.string(), targets: z.array(z.object({ expr: z.string() })).min(1) }),
    ),
  })
  .parse(JSON.parse(read('config/monitoring/grafana-dashboard.json')))

const rules = z
  .object({
    groups: z.array(
      z.object({
        rules: z.array(
          z.object({
            alert: z.string(),
            expr: z.string(),
            for: z.string().optional(),
            labels: z.object({ severity: z.enum(['critical', 'warning', 'info']) }),
            annotations: z.object({ summary: z.string().min(10) }),
          }),
        ),
      }),
    ),
  })
  .parse(parse(read('config/monitoring/prometheus-rules.yml')))
  .groups.flatMap((group) => group.rules)

/** Gauges are written where they are read; these are their names and labels. */
const GAUGES = [...read('src/worker/admin/metrics.ts').matchAll(/'(cmr_\w+)'/g)].map(
  ([, name = '']) => name,
)

/** Every label that the code gives a metric, as the observability page has it. */
const documented = new Map(
  [...read('docs/observability.md').matchAll(/^\| `(cmr_\w+)` +\| \w+ +\| ([^|]*)\|/gm)].map(
    ([, name = '', labels = '']) => [
      name,
      new Set([...labels.matchAll(/`(\w+)`/g)].map(([, label = '']) => label)),
    ],
  ),
)

const families = readFamilies(`${new Metrics().render()}${new HostCounts().render()}`)
const exists = new Set([...families.map(({ name }) => name), ...GAUGES])

/** `cmr_x_bucket` is of the histogram `cmr_x`. */
function familyOf(metric: string): string {
  const base = metric.replace(/_(bucket|sum|count)$/, '')
  return families.some(({ name, kind }) => name === base && kind === 'histogram') ? base : metric
}

const expressions = [
  ...dashboard.panels.flatMap(({ title, targets }) =>
    targets.map(({ expr }) => [`dashboard: ${title}`, expr] as const),
  ),
  ...rules.map(({ alert, expr }) => [`alert: ${alert}`, expr] as const),
]

describe('every expression of the monitoring', () => {
  test.each(expressions)('%s asks for metrics and labels that exist', (_where, expr) => {
    const asked = [...expr.matchAll(/\b(cmr_\w+)(?:\{([^}]*)\})?/g)]
    expect(asked.length).toBeGreaterThan(0)
    for (const [, metric = '', matchers = ''] of asked) {
      const family = familyOf(metric)
      expect([...exists]).toContain(family)
      const labels = [...matchers.matchAll(/(\w+)\s*(?:=|!)/g)].map(([, label = '']) => label)
      for (const label of labels) expect([...(documented.get(family) ?? [])]).toContain(label)
    }
  })
})

test('every metric is documented, and every metric that exists is shown or alarmed on', () => {
  expect([...documented.keys()].toSorted()).toEqual([...exists].toSorted())
  const used = new Set(
    expressions.flatMap(([, expr]) =>
      [...expr.matchAll(/\bcmr_\w+/g)].map(([metric]) => familyOf(metric)),
    ),
  )
  expect([...exists].filter((name) => !used.has(name))).toEqual([])
})

test('every metric in the operator’s table of alarms has an alert rule', () => {
  const [, table = ''] = read('docs/operations.md').split('## Alarms')
  const named = new Set([...table.matchAll(/cmr_\w+/g)].map(([metric]) => metric))
  const alarmed = new Set(
    rules.flatMap(({ expr }) =>
      [...expr.matchAll(/\bcmr_\w+/g)].map(([metric]) => familyOf(metric)),
    ),
  )
  expect(named.size).toBeGreaterThan(10)
  expect([...named].filter((name) => !alarmed.has(name))).toEqual([])
})

test('an alarm that one count is enough for is raised by the first count of a series, too', () => {
  // `increase` is the growth of a series that was there before; one that has just appeared has none.
  const ofAnyGrowth = rules.filter(({ expr, for: time = '0m' }) => {
    return /increase\([^)]*\)\) > 0/.test(expr) && Number.parseInt(time, 10) < 15
  })
  expect(ofAnyGrowth.map(({ alert }) => alert)).toEqual([
    'LinkFaults',
    'StorageFaults',
    'SettlementFaults',
    'SettlementQuarantined',
    'KeptAnswerUnreadable',
    'InternalErrors',
  ])
  for (const { expr } of ofAnyGrowth) {
    const [, selector = '', window = ''] = /increase\((\S+)\[(\w+)\]\)/.exec(expr) ?? []
    expect(expr).toBe(
      `sum by (instance) (increase(${selector}[${window}])) > 0 or ` +
        `sum by (instance) (${selector} unless ${selector} offset ${window}) > 0`,
    )
  }
})

test('the alarm that nothing reaches a provider is raised also where no token was ever counted', () => {
  const { expr } = rules.find(({ alert }) => alert === 'NothingReachesProviders') ?? { expr: '' }
  expect(expr).toMatch(
    / > 0\.1 unless sum by \(instance\) \(rate\(cmr_tokens_total\[10m\]\)\) > 0$/,
  )
})
