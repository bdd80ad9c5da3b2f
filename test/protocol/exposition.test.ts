import { expect, test } from 'vitest'
import { addExpositions, readFamilies } from '../../src/protocol/exposition.ts'
import { Counter, Histogram } from '../../src/worker/metrics/families.ts'

const worker = (requests: number, route: string) => {
  const counter = new Counter('cmr_requests_total', 'Answered requests.')
  const histogram = new Histogram('cmr_seconds', 'Time.', [0.1, 1])
  for (let turn = 0; turn < requests; turn++) {
    counter.add({ route, code: 'a "b" {c}' })
    histogram.observe({ route }, 0.5)
  }
  return counter.render() + histogram.render()
}

test('what two workers counted is added up, sample by sample, in the form of one', () => {
  const sum = addExpositions([worker(2, 'x'), worker(3, 'x'), worker(1, 'y')])
  const both = new Counter('cmr_requests_total', 'Answered requests.')
  both.add({ route: 'x', code: 'a "b" {c}' }, 5)
  both.add({ route: 'y', code: 'a "b" {c}' }, 1)
  expect(sum.startsWith(both.render())).toBe(true)
  const [, histogram] = readFamilies(sum)
  expect(Object.fromEntries(histogram?.samples ?? [])).toMatchObject({
    'cmr_seconds_bucket{route="x",le="0.1"}': 0,
    'cmr_seconds_bucket{route="x",le="1"}': 5,
    'cmr_seconds_bucket{route="x",le="+Inf"}': 5,
    'cmr_seconds_sum{route="x"}': 2.5,
    'cmr_seconds_count{route="y"}': 1,
  })
})

test('the metrics of one worker alone are unchanged', () => {
  expect(addExpositions([worker(2, 'x')])).toBe(worker(2, 'x'))
  expect(addExpositions(['', worker(2, 'x')])).toBe(worker(2, 'x'))
  expect(addExpositions([])).toBe('')
})
