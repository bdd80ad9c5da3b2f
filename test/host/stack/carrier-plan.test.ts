import { describe, expect, test } from 'vitest'
import { carrierOf, carriersFor, streamsOfThread } from '../../../src/host/stack/carrier-plan.ts'
import { workerNames } from '../../../src/host/stack/worker-name.ts'

describe('the carriers of a daemon', () => {
  test.each([
    ['one worker needs none', 1, undefined, 0],
    ['one worker needs none, whatever is asked', 1, 8, 0],
    ['several have one each', 3, undefined, 3],
    ['several have fewer where that is asked', 3, 2, 2],
    ['several have none where one thread is asked', 3, 1, 0],
    ['several have no more than there are workers', 2, 64, 2],
  ])('%s', (_what, workers, asked, carriers) => {
    expect(carriersFor(workers, asked)).toBe(carriers)
  })

  test('take turns: each worker has one, and always the same', () => {
    const assigned = () => workerNames(5).map((name) => carrierOf(name, ['a', 'b']))
    expect(assigned()).toEqual(['a', 'b', 'a', 'b', 'a'])
    expect(assigned()).toEqual(assigned())
  })

  test('are none where the main thread carries', () => {
    expect(carrierOf('worker-2', [])).toBeUndefined()
  })
})

describe('a thread may have twice as many streams as its workers have open requests', () => {
  test.each([
    ['one worker without carriers', 1, 0, 2_000],
    ['several workers without carriers', 3, 0, 6_000],
    ['a carrier for each worker', 3, 3, 2_000],
    ['carriers of which the fullest has two workers', 3, 2, 4_000],
  ])('%s', (_what, workers, carriers, streams) => {
    expect(streamsOfThread(workers, carriers, 1_000)).toBe(streams)
  })
})
