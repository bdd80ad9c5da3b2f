import { ChildProcess } from 'node:child_process'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  createProcessRestarter,
  type RestarterEvents,
  type Started,
} from '../../../src/host/stack/process-restarter.ts'

/** Children that die when told to. */
function makeChildren() {
  const kills: ((why: string) => void)[] = []
  const start = vi.fn<() => Promise<Started<string>>>(async () => {
    const { promise, resolve } = Promise.withResolvers<string>()
    kills.push(resolve)
    const child = { pid: kills.length, process: new ChildProcess(), ended: promise, stop }
    return { child, ready: `ready ${kills.length}` }
  })
  return { start, killLast: (why: string) => kills.at(-1)?.(why) }
}

async function stop(): Promise<void> {}

const prepare = async () => {}

const events = {
  up: vi.fn<RestarterEvents<string>['up']>(),
  died: vi.fn<RestarterEvents<string>['died']>(),
  gaveUp: vi.fn<RestarterEvents<string>['gaveUp']>(),
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  vi.clearAllMocks()
})
afterEach(() => {
  vi.useRealTimers()
})

async function wait(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms)
}

describe('a restarter', () => {
  test('brings a dead child back after three seconds', async () => {
    const { start, killLast } = makeChildren()
    await createProcessRestarter(start, Date.now, events).start()
    killLast('signal SIGKILL')
    await wait(2_900)
    expect(events.died).toHaveBeenCalledExactlyOnceWith('signal SIGKILL', 3_000)
    expect(start).toHaveBeenCalledTimes(1)
    await wait(200)
    expect(events.up).toHaveBeenLastCalledWith('ready 2', 2)
  })

  test('waits longer after each death and gives up at the fifth within a minute', async () => {
    const { start, killLast } = makeChildren()
    await createProcessRestarter(start, Date.now, events).start()
    for (let death = 1; death <= 5; death++) {
      killLast(`death ${death}`)
      await wait(11_000)
    }
    expect(events.died.mock.calls.map(([, ms]) => ms)).toEqual([3_000, 4_500, 6_750, 10_125])
    expect(events.gaveUp).toHaveBeenCalledExactlyOnceWith('death 5', 5)
    expect(start).toHaveBeenCalledTimes(5)
  })

  test('counts a start that fails as a death', async () => {
    const { start, killLast } = makeChildren()
    await createProcessRestarter(start, Date.now, events).start()
    start.mockRejectedValue(new Error('did not come up'))
    killLast('exit status 1')
    await wait(60_000)
    expect(events.gaveUp).toHaveBeenCalledExactlyOnceWith('did not come up', 5)
  })

  test('forgets deaths that are more than a minute old', async () => {
    const { start, killLast } = makeChildren()
    await createProcessRestarter(start, Date.now, events).start()
    for (let death = 1; death <= 6; death++) {
      killLast('exit status 1')
      await wait(61_000)
    }
    expect(events.died.mock.calls.every(([, ms]) => ms === 3_000)).toBe(true)
    expect(events.gaveUp).not.toHaveBeenCalled()
  })

  test('forgets deaths of a time that is yet to come, as when the clock was set back', async () => {
    const { start, killLast } = makeChildren()
    await createProcessRestarter(start, Date.now, events).start()
    for (let death = 1; death <= 6; death++) {
      killLast('exit status 1')
      await wait(4_000)
      vi.setSystemTime(Date.now() - 3_600_000)
    }
    expect(events.died.mock.calls.every(([, ms]) => ms === 3_000)).toBe(true)
    expect(events.gaveUp).not.toHaveBeenCalled()
  })

  test('says whether its child is up', async () => {
    const { start, killLast } = makeChildren()
    const restarter = createProcessRestarter(start, Date.now, events)
    expect(restarter.isUp()).toBe(false)
    await restarter.start()
    expect(restarter.isUp()).toBe(true)
    killLast('exit status 1')
    await wait(2_000)
    expect(restarter.isUp()).toBe(false)
    await wait(2_000)
    expect(restarter.isUp()).toBe(true)
  })

  test('brings nothing back once it is stopped', async () => {
    const { start, killLast } = makeChildren()
    const restarter = createProcessRestarter(start, Date.now, events)
    await restarter.start()
    killLast('exit status 1')
    await wait(1_000)
    await restarter.stop(1_000)
    await wait(10_000)
    expect(start).toHaveBeenCalledTimes(1)
  })
})

describe('a restarter that never gives up', () => {
  test('waits longer each time, up to a limit', async () => {
    const { start, killLast } = makeChildren()
    const policy = { firstMs: 500, growth: 2, maxDelayMs: 2_000, maxCrashes: undefined }
    await createProcessRestarter(start, Date.now, events, policy).start()
    for (let death = 1; death <= 8; death++) {
      killLast('exit status 1')
      await wait(2_100)
    }
    expect(events.died.mock.calls.map(([, ms]) => ms).slice(0, 4)).toEqual([
      500, 1_000, 2_000, 2_000,
    ])
    expect(events.gaveUp).not.toHaveBeenCalled()
    expect(start).toHaveBeenCalledTimes(9)
  })

  test('replaces a child without counting its end as a death', async () => {
    const { start, killLast } = makeChildren()
    const restarter = createProcessRestarter(start, Date.now, events)
    await restarter.start()
    await restarter.replace(1_000, true, prepare)
    killLast('never mind')
    expect(events.up).toHaveBeenLastCalledWith('ready 2', 2)
    expect(start).toHaveBeenCalledTimes(2)
    await wait(1)
    expect(events.died).toHaveBeenCalledExactlyOnceWith('never mind', 3_000)
  })

  test('replaces also a child whose start was under way, because it may have read what was in force before', async () => {
    const { start, killLast } = makeChildren()
    const restarter = createProcessRestarter(start, Date.now, events)
    await restarter.start()
    const begun = Promise.withResolvers<void>()
    const quick = start.getMockImplementation() ?? start
    start.mockImplementationOnce(async () => {
      await begun.promise
      return quick()
    })
    killLast('exit status 1')
    await wait(3_000)
    const replaced = restarter.replace(1_000, true, prepare)
    begun.resolve()
    await replaced
    expect(events.up.mock.calls.map(([ready]) => ready)).toEqual(['ready 1', 'ready 2', 'ready 3'])
  })

  test('leaves a child alone that is yet to be restarted', async () => {
    const { start, killLast } = makeChildren()
    const restarter = createProcessRestarter(start, Date.now, events)
    await restarter.start()
    killLast('exit status 1')
    await wait(1_000)
    await restarter.replace(1_000, true, prepare)
    expect(start).toHaveBeenCalledTimes(1)
    await wait(2_000)
    expect(events.up).toHaveBeenLastCalledWith('ready 2', 2)
  })

  test('replaces a child only when all is prepared for it', async () => {
    const { start } = makeChildren()
    const restarter = createProcessRestarter(start, Date.now, events)
    await restarter.start()
    const prepared = Promise.withResolvers<void>()
    const replaced = restarter.replace(1_000, true, () => prepared.promise)
    await wait(1_000)
    expect([restarter.isUp(), start.mock.calls.length]).toEqual([true, 1])
    prepared.resolve()
    await replaced
    expect(events.up).toHaveBeenLastCalledWith('ready 2', 2)
  })

  test('leaves the successor alone of a child that dies while its replacement is prepared', async () => {
    const { start, killLast } = makeChildren()
    const restarter = createProcessRestarter(start, Date.now, events)
    await restarter.start()
    const prepared = Promise.withResolvers<void>()
    const replaced = restarter.replace(1_000, true, () => prepared.promise)
    await wait(1)
    killLast('exit status 1')
    await wait(3_000)
    prepared.resolve()
    await replaced
    expect(start).toHaveBeenCalledTimes(2)
    expect(restarter.isUp()).toBe(true)
  })
})
