import { describe, expect, it } from 'vitest'
import { LinkUnavailable } from '../../../src/worker/link/link.ts'
import { CarriedCalls } from '../../../src/worker/routing/carried-calls.ts'
import type { Route } from '../../../src/worker/provider/route.ts'
import { catalogueOf, tokenPrice } from '../../support/router-config.ts'

const pricing = tokenPrice('eur', 1, 2)
const routes = catalogueOf({
  'nova/glm': { pricing },
  'vela/glm': { pricing },
  'luna/glm': { pricing },
}).routes

function pinned(id: string): Route {
  const route = routes.find((one) => one.id === id)
  if (route === undefined) throw new Error('no such route')
  return { ...route, provider: { ...route.provider, isCarried: true } }
}

const nova = pinned('nova/glm')
const vela = pinned('vela/glm')
const luna = pinned('luna/glm')

const LOST = new LinkUnavailable('the enclave daemon broke off its answer')
const BLAME = { kind: 'unavailable', retryAfterMs: 60_000 }

/** The calls of a worker, whose daemon has the thread that is named. */
function worker() {
  const daemon = { thread: 'one' as string | undefined, now: 0, answers: true, failsAfterMs: 0 }
  const calls = new CarriedCalls(
    {
      watchThread: () => {
        const { thread } = daemon
        return { thread, loss: async () => (daemon.thread === thread ? undefined : LOST) }
      },
      state: async () => {
        if (daemon.answers) return
        daemon.now += daemon.failsAfterMs
        throw LOST
      },
    },
    () => daemon.now,
  )
  return { daemon, calls }
}

type Worker = ReturnType<typeof worker>

/** What is held against `nova` for the death of a thread that carried it, and calls of others. */
async function die({ daemon, calls }: Worker, next: string, others: readonly Route[] = []) {
  const call = calls.begin(nova)
  const beside = others.map((route) => calls.begin(route))
  daemon.thread = next
  const lost = await call.lostThread()
  for (const one of [call, ...beside]) one.end()
  expect(lost?.error).toBe(LOST)
  return lost?.failure
}

describe('the death of a thread of the daemon', () => {
  it('is held against a route whose calls alone it and the one before carried', async () => {
    const here = worker()
    expect(await die(here, 'two')).toBeUndefined()
    expect(await die(here, 'three')).toEqual(BLAME)
    expect(await die(here, 'four')).toEqual(BLAME)
  })

  it('is the third one held against the only route that was carried at all three, whatever was carried beside it', async () => {
    const here = worker()
    expect(await die(here, 'two', [vela])).toBeUndefined()
    expect(await die(here, 'three', [luna])).toBeUndefined()
    expect(await die(here, 'four', [vela, luna])).toEqual(BLAME)
    expect(await die(here, 'five', [vela])).toEqual(BLAME)
  })

  it('is held against none of several routes that are carried each time', async () => {
    const here = worker()
    for (const thread of ['two', 'three', 'four', 'five']) {
      expect(await die(here, thread, [vela])).toBeUndefined()
    }
  })

  it('is not held against a route that was not carried at one of the last three', async () => {
    const here = worker()
    const { calls, daemon } = here
    expect(await die(here, 'two', [vela])).toBeUndefined()
    const other = calls.begin(vela)
    daemon.thread = 'three'
    expect((await other.lostThread())?.failure).toBeUndefined()
    expect(await die(here, 'four', [luna])).toBeUndefined()
  })

  it('is not held against a route ten minutes after another one', async () => {
    const here = worker()
    await die(here, 'two')
    here.daemon.now += 600_000
    expect(await die(here, 'three')).toBeUndefined()
    here.daemon.now += 599_999
    expect(await die(here, 'four')).toEqual(BLAME)
  })

  it('is one, however many calls it ended', async () => {
    const { daemon, calls } = worker()
    const all = Array.from({ length: 5 }, () => calls.begin(nova))
    daemon.thread = 'two'
    const lost = await Promise.all(all.map((call) => call.lostThread()))
    expect(lost.map((one) => one?.failure)).toEqual(all.map(() => undefined))
  })

  it('concerns a stream of another route that goes on, and no call that has ended', async () => {
    const here = worker()
    await die(here, 'two')
    const ended = here.calls.begin(vela)
    ended.end()
    ended.end()
    expect(await die(here, 'three')).toEqual(BLAME)
    const relayed = here.calls.begin(vela)
    expect(await die(here, 'four')).toEqual(BLAME)
    expect((await relayed.lostThread())?.failure).toBeUndefined()
  })

  it('is not held against calls that began without knowing a thread', async () => {
    const here = worker()
    await die(here, 'two')
    here.daemon.thread = undefined
    const call = here.calls.begin(nova)
    here.daemon.thread = 'three'
    expect(await call.lostThread()).toEqual({ error: LOST, failure: undefined })
  })

  it('is not counted for a thread that still answers, nor for a call that went past the daemon', async () => {
    const { daemon, calls } = worker()
    expect(await calls.begin(nova).lostThread()).toBeUndefined()
    const past = { ...nova, provider: { ...nova.provider, isCarried: false } }
    const call = calls.begin(past)
    daemon.thread = 'two'
    expect(await call.lostThread()).toBeUndefined()
  })

  it('is held against a route, although calls of another were ended by the runtime long ago', async () => {
    const here = worker()
    here.calls.begin(vela)
    await die(here, 'two')
    expect(await die(here, 'three')).toBeUndefined()
    expect(await die(here, 'four')).toEqual(BLAME)
  })
})

describe('a daemon that is waited for', () => {
  it('is back as soon as it answers', async () => {
    const { daemon, calls } = worker()
    daemon.answers = false
    const waits: number[] = []
    await calls.begin(nova).daemonBack(async (ms) => {
      waits.push(ms)
      daemon.answers = waits.length === 3
    })
    expect(waits).toEqual([250, 250, 250])
  })

  it.each([
    ['refuses', 0, 19],
    ['takes three seconds to fail', 3_000, 1],
  ])('is given up after five seconds when it %s', async (_, failsAfterMs, pauses) => {
    const { daemon, calls } = worker()
    daemon.answers = false
    daemon.failsAfterMs = failsAfterMs
    const waits: number[] = []
    const wait = async (ms: number) => {
      waits.push(ms)
      daemon.now += ms
    }
    await expect(calls.begin(nova).daemonBack(wait)).rejects.toBe(LOST)
    expect(waits).toHaveLength(pauses)
  })
})
