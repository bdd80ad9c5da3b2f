import { describe, expect, it } from 'vitest'
import { Counter, gaugeText } from '../../../src/worker/metrics/families.ts'
import { Metrics } from '../../../src/worker/metrics/metrics.ts'
import { loggingTo } from '../../support/logging-to.ts'

function linesOf(text: string, name: string): string[] {
  return text.split('\n').filter((line) => line.startsWith(name))
}

describe('the metrics', () => {
  it('count requests by endpoint, status and code', () => {
    const metrics = new Metrics()
    const log = loggingTo(metrics.count)
    log('request', { endpoint: 'chat', status: 200, duration_ms: 20 })
    log('request', { endpoint: 'chat', status: 200, duration_ms: 700 })
    log('request', { endpoint: 'chat', status: 503, code: 'routes_unavailable', duration_ms: 1 })
    expect(linesOf(metrics.render(), 'cmr_requests_total')).toEqual([
      'cmr_requests_total{endpoint="chat",status="200",code=""} 2',
      'cmr_requests_total{endpoint="chat",status="503",code="routes_unavailable"} 1',
    ])
  })

  it('spread durations over growing buckets that end with all of them', () => {
    const metrics = new Metrics()
    const log = loggingTo(metrics.count)
    for (const duration_ms of [1, 30, 700_000]) log('request', { endpoint: 'chat', duration_ms })
    const buckets = linesOf(metrics.render(), 'cmr_request_duration_seconds')
    expect(buckets[0]).toBe('cmr_request_duration_seconds_bucket{endpoint="chat",le="0.005"} 1')
    expect(buckets).toContain('cmr_request_duration_seconds_bucket{endpoint="chat",le="0.05"} 2')
    expect(buckets.at(-3)).toBe('cmr_request_duration_seconds_bucket{endpoint="chat",le="+Inf"} 3')
    expect(buckets.at(-1)).toBe('cmr_request_duration_seconds_count{endpoint="chat"} 3')
  })

  it('count attempts by outcome, failovers, tokens and receipts', () => {
    const metrics = new Metrics()
    const log = loggingTo(metrics.count)
    log('attempt_failed', { route: 'nova/glm', failure: 'timeout' })
    log('attempt_served', { route: 'vela/glm', failover: true, first_delta_ms: 80 })
    log('settled', {
      route: 'vela/glm',
      prompt_tokens: 3,
      completion_tokens: 5,
      receipt: true,
      signed: 'afterwards',
    })
    const text = metrics.render()
    for (const line of [
      'cmr_attempts_total{route="nova/glm",outcome="timeout"} 1',
      'cmr_attempts_total{route="vela/glm",outcome="served"} 1',
      'cmr_failovers_total{route="vela/glm"} 1',
      'cmr_first_delta_seconds_bucket{route="vela/glm",le="0.1"} 1',
      'cmr_tokens_total{route="vela/glm",kind="prompt"} 3',
      'cmr_tokens_total{route="vela/glm",kind="completion"} 5',
      'cmr_receipts_total{receipt="true",signed="afterwards"} 1',
    ]) {
      expect(text).toContain(line)
    }
  })

  it('have all counted that was logged before they are read', () => {
    const metrics: Metrics = new Metrics(() => waiting.splice(0).forEach((note) => note()))
    const log = loggingTo(metrics.count)
    const waiting = [
      () => log('request', { endpoint: 'chat', status: 200 }),
      () => log('settle_failed', { code: 'internal' }),
    ]
    expect(metrics.takeSettlementFaults()).toBe(1)
    expect(metrics.takeSettlementFaults()).toBe(0)
    waiting.push(() => log('request', { endpoint: 'chat', status: 200 }))
    expect(linesOf(metrics.render(), 'cmr_requests_total')).toEqual([
      'cmr_requests_total{endpoint="chat",status="200",code=""} 2',
    ])
  })

  it('keep a bounded number of series whatever the labels say', () => {
    const counter = new Counter('c', 'h')
    for (let i = 0; i < 5_000; i++) counter.add({ id: i })
    const lines = linesOf(counter.render(), 'c{')
    expect(lines).toHaveLength(2_001)
    expect(lines.at(-1)).toBe('c{overflow="true"} 3000')
  })

  it('escape label values', () => {
    expect(gaugeText('g', 'h', [{ labels: { a: 'x"\\\n' }, value: 1 }])).toContain(
      'g{a="x\\"\\\\\\n"} 1',
    )
  })
})
