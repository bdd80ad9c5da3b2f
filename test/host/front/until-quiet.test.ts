import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { untilQuiet } from '../../../src/host/front/until-quiet.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

/** After how many milliseconds a front is quiet that has handshakes for so long. */
async function quietAfter(handshakesMs: number): Promise<number> {
  const begun = performance.now()
  let quiet: number | undefined
  const now = () => performance.now()
  void untilQuiet(() => now() - begun < handshakesMs, now).then(() => (quiet = now() - begun))
  await vi.advanceTimersByTimeAsync(5_000)
  return quiet ?? Number.NaN
}

describe('a worker can be replaced', () => {
  test('a tenth of a second after its clients wait, when it has what they sent before', async () => {
    const ms = await quietAfter(0)
    expect(ms).toBeGreaterThanOrEqual(100)
    expect(ms).toBeLessThan(150)
  })

  test('a tenth of a second after the last handshake, when it has the request that came with its end', async () => {
    const ms = await quietAfter(1_000)
    expect(ms).toBeGreaterThanOrEqual(1_080)
    expect(ms).toBeLessThan(1_150)
  })

  test('after three seconds whatever its clients do', async () => {
    const ms = await quietAfter(Number.POSITIVE_INFINITY)
    expect(ms).toBeGreaterThanOrEqual(3_000)
    expect(ms).toBeLessThan(3_050)
  })
})
