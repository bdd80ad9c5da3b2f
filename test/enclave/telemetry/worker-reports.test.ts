import { describe, expect, test } from 'vitest'
import { WorkerReports } from '../../../src/enclave/telemetry/worker-reports.ts'
import { addExpositions, readFamilies } from '../../../src/protocol/exposition.ts'

const metrics = (count: number) =>
  `# HELP cmr_requests_total Answered requests.\n# TYPE cmr_requests_total counter\ncmr_requests_total ${count}\n`

const report = (instance: string, count: number, more: object = {}) => ({
  instance,
  metrics: metrics(count),
  open_requests: 1,
  resting: {},
  ...more,
})

/** What the daemon counts itself. */
const HOST = '# HELP cmr_host_total Of the host.\n# TYPE cmr_host_total counter\ncmr_host_total 3\n'

const countOf = (text: string) =>
  readFamilies(text)
    .find(({ name }) => name === 'cmr_requests_total')
    ?.samples.get('cmr_requests_total') ?? 0

describe('the reports of the workers of a host', () => {
  test('have with them once what is counted outside of the workers, also before any worker reports', () => {
    const reports = new WorkerReports(
      () => 0,
      () => HOST,
    )
    const hostOf = (text: string) =>
      readFamilies(text)
        .find(({ name }) => name === 'cmr_host_total')
        ?.samples.get('cmr_host_total')
    expect(hostOf(reports.total())).toBe(3)
    for (const instance of ['a', 'b']) reports.take(report(instance, 1))
    expect(hostOf(reports.total())).toBe(3)
    expect(hostOf(addExpositions(reports.others('a').metrics))).toBe(3)
  })

  test('are reported to each without its own, so that with its own they are complete', () => {
    const reports = new WorkerReports(
      () => 0,
      () => HOST,
    )
    for (const [instance, count] of [
      ['a', 1],
      ['b', 2],
      ['c', 4],
      ['a', 8],
    ] as const) {
      reports.take(report(instance, count))
    }
    expect(countOf(addExpositions(reports.others('a').metrics))).toBe(6)
    expect(reports.others('a').open_requests).toBe(2)
    expect(countOf(reports.total())).toBe(14)
  })

  test('stay in the sum when a worker has ended, while its states do not', () => {
    let now = 0
    const reports = new WorkerReports(
      () => now,
      () => HOST,
    )
    reports.take(report('gone', 5, { resting: { 'nova/a': 1 } }))
    now = 300_000
    reports.take(report('new', 1, { resting: { 'nova/a': 0.5 } }))
    const others = reports.others('asking')
    expect(countOf(addExpositions(others.metrics))).toBe(6)
    expect(others).toMatchObject({ open_requests: 1, resting: { 'nova/a': 0.5 } })
  })

  test('count every worker once, also where more of them run than are kept of those that have ended', () => {
    const reports = new WorkerReports(
      () => 0,
      () => HOST,
    )
    for (const count of [1, 2]) {
      for (let worker = 0; worker < 100; worker++) reports.take(report(`worker ${worker}`, count))
      expect(countOf(reports.total())).toBe(100 * count)
    }
  })

  test('never fall and never pile up, however often a worker was started', () => {
    let now = 0
    const reports = new WorkerReports(
      () => now,
      () => HOST,
    )
    for (let turn = 1; turn <= 500; turn++) {
      now += 10_000
      reports.take(report(`start ${turn}`, 1))
      expect(countOf(reports.total())).toBe(turn)
    }
    expect(reports.others('asking').metrics.length).toBeLessThan(100)
  })
})
