import { expect, test } from 'vitest'
import { FairTurns } from '../../../src/worker/limits/fair-turns.ts'
import { RequestTurns } from '../../../src/worker/limits/request-turns.ts'

const client = new AbortController().signal
const deps = { now: () => 0, pause: () => new Promise<never>(() => {}) }

function limitedToOne(): FairTurns {
  return new FairTurns({
    capacity: 1,
    capacityOfCost: 0,
    activeMs: 1_000,
    maxWaiting: 10,
    maxWaitMs: 1_000,
    refusal: () => expect.unreachable('nothing is refused'),
    disconnected: () => expect.unreachable('no client leaves'),
  })
}

test.each(['begin', 'finish'] as const)(
  'a request that waits aside while it works (%s) lets those of others begin',
  async (part) => {
    const shared = limitedToOne()
    const waits = new RequestTurns(shared, 'waits', deps)
    const works = new RequestTurns(shared, 'works', deps)
    const begins = new RequestTurns(shared, 'begins', deps)
    const events: string[] = []
    const freed = Promise.withResolvers<void>()
    const worked = Promise.withResolvers<void>()
    const work = async () => {
      await waits.yieldDuring(() => freed.promise)
      events.push('waited')
    }
    const waiting = part === 'begin' ? waits.begin({ cost: 1, client }, work) : waits.finish(work)
    const working = works.begin({ cost: 1, client }, async () => {
      events.push('works')
      await worked.promise
    })
    const beginning = begins.begin({ cost: 1, client }, async () => void events.push('begins'))
    worked.resolve()
    await Promise.all([working, beginning])
    expect(events).toEqual(['works', 'begins'])
    freed.resolve()
    await waiting
    expect(events).toEqual(['works', 'begins', 'waited'])
  },
)

test('a request without a turn waits as it is', async () => {
  const turns = new RequestTurns(limitedToOne(), 'owner', deps)
  await turns.finish(async () => {})
  expect(await turns.yieldDuring(async () => 'waited')).toBe('waited')
})
