import { expect, test, vi } from 'vitest'
import { Shutdown } from '../../../src/worker/limits/shutdown.ts'

const deps = (open: () => number) => {
  let now = 0
  const pause = async (ms: number) => void (now += ms)
  return { open, now: () => now, pause, at: () => now }
}

test('a drain waits for what is open, and ends nothing that ends by itself in time', async () => {
  const shutdown = new Shutdown()
  const end = vi.fn<(reason: Error) => void>()
  shutdown.onEnd(end)
  const looks = [2, 1, 0]
  const world = deps(() => looks.shift() ?? 0)
  await shutdown.drain(1_000, world)
  expect(world.at()).toBe(100)
  expect(end).not.toHaveBeenCalled()
})

test('what is open when the time is up is ended once, with the error for its client; what ended before is not', async () => {
  const shutdown = new Shutdown()
  const [end, over] = [vi.fn<(reason: Error) => void>(), vi.fn<(reason: Error) => void>()]
  shutdown.onEnd(end)
  shutdown.onEnd(over)()
  const world = deps(() => (world.at() > 1_200 ? 0 : 1))
  await shutdown.drain(1_000, world)
  expect(end.mock.calls).toEqual([
    [
      expect.objectContaining({
        code: 'service_unavailable',
        message:
          'The router is being stopped or replaced, and could wait no longer for the answer.',
        details: { retryAfter: 5 },
      }),
    ],
  ])
  expect(over).not.toHaveBeenCalled()
})

test('a request that begins after that is ended, too', async () => {
  const shutdown = new Shutdown()
  const looks = [1, 0]
  await shutdown.drain(
    0,
    deps(() => looks.shift() ?? 0),
  )
  const end = vi.fn<(reason: Error) => void>()
  shutdown.onEnd(end)
  await Promise.resolve()
  expect(end).toHaveBeenCalledOnce()
})
