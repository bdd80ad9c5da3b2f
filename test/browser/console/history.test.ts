import { describe, expect, test } from 'vitest'
import { addScrape, type Point } from '../../../src/browser/console/history.ts'
import { percentileBetween, readSamples, sumOf } from '../../../src/browser/console/metrics-text.ts'

const scrape = (all: number, failed: number, slow: number) =>
  readSamples(`# HELP cmr_requests_total Answered requests.
# TYPE cmr_requests_total counter
cmr_requests_total{endpoint="chat",status="200"} ${all - failed}
cmr_requests_total{endpoint="chat",status="503"} ${failed}
cmr_first_delta_seconds_bucket{route="a\\"b",le="0.1"} ${all - slow}
cmr_first_delta_seconds_bucket{route="a\\"b",le="1"} ${all}
cmr_first_delta_seconds_bucket{route="a\\"b",le="+Inf"} ${all}
nonsense
`)

describe('the metrics of a console', () => {
  test('are read with their labels, and what is no sample is left out', () => {
    const samples = scrape(10, 2, 1)
    expect(samples).toHaveLength(5)
    expect(samples[2]?.labels).toEqual({ route: 'a"b', le: '0.1' })
    expect(sumOf(samples, 'cmr_requests_total')).toBe(10)
    expect(sumOf(samples, 'cmr_requests_total', ({ status }) => status === '503')).toBe(2)
  })

  test('give a percentile of what came between two scrapes, and none where nothing came', () => {
    const [before, after] = [scrape(10, 0, 0), scrape(30, 0, 2)]
    const of = (fraction: number) =>
      percentileBetween(before, after, 'cmr_first_delta_seconds', fraction)
    expect(of(0.5)).toBe(0.1)
    expect(of(0.95)).toBe(1)
    expect(percentileBetween(after, after, 'cmr_first_delta_seconds', 0.5)).toBeUndefined()
  })
})

describe('the history of a console', () => {
  const scrapeAt = (at: number, all: number, failed = 0) => ({
    at,
    samples: scrape(all, failed, 0),
  })

  test('has rates between two scrapes, and nothing after the first', () => {
    expect(addScrape([], undefined, scrapeAt(0, 10))).toEqual([])
    const [point] = addScrape([], scrapeAt(0, 10, 0), scrapeAt(5, 60, 10))
    expect(point).toMatchObject({
      at: 5,
      requests: 10,
      failed: 2,
      refused: 0,
      firstDeltaMedian: 100,
    })
  })

  test('counts from nothing where the router was started anew', () => {
    const [point] = addScrape([], scrapeAt(0, 1000), scrapeAt(5, 50))
    expect(point).toMatchObject({ requests: 10 })
  })

  test('keeps an hour and no more', () => {
    let points: Point[] = []
    for (let at = 5; at <= 5000; at += 5)
      points = addScrape(points, scrapeAt(at - 5, at), scrapeAt(at, at + 5))
    expect(points).toHaveLength(720)
    expect(points.at(-1)?.at).toBe(5000)
  })
})
