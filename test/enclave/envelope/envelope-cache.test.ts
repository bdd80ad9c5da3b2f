import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { CaptureError } from '../../../src/enclave/snp/capture-error.ts'
import { EnvelopeCache, type CachedEnvelope } from '../../../src/enclave/envelope/envelope-cache.ts'
import { LinkError } from '../../../src/enclave/link-error.ts'
import { keptEnvelope } from './cached-envelope.ts'

const MINUTE = 60_000
const NONCE = 'ab'.repeat(32)

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function setUp() {
  const state = { made: 0, fail: undefined as Error | undefined, delayMs: 0 }
  const told: string[] = []
  const make = async (nonce = ''): Promise<CachedEnvelope> => {
    const number = ++state.made
    if (state.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, state.delayMs))
    if (state.fail !== undefined) throw state.fail
    return keptEnvelope({ issued: number, nonce, capturedAt: Date.now() })
  }
  const cache = new EnvelopeCache({
    make,
    buildFresh: make,
    now: Date.now,
    onFailure: (reason) => told.push(reason),
    onRestored: () => told.push('restored'),
  })
  return { cache, state, told }
}

async function refusal(work: Promise<unknown>): Promise<readonly [string, number, string]> {
  const error: unknown = await work.catch((thrown: unknown) => thrown)
  if (error instanceof LinkError) return [error.code, error.status, error.message]
  throw new Error('not refused', { cause: error })
}

describe('the cached envelope', () => {
  it('is captured once for all who ask at the same time, and then kept', async () => {
    const { cache, state } = setUp()
    const [first, second] = await Promise.all([cache.get(), cache.get()])
    expect(first).toBe(second)
    expect(await cache.get()).toBe(first)
    expect(state.made).toBe(1)
  })

  it('is captured again every half hour', async () => {
    const { cache, state } = setUp()
    await cache.get()
    await vi.advanceTimersByTimeAsync(30 * MINUTE - 1)
    expect(state.made).toBe(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(state.made).toBe(2)
    cache.close()
    await vi.advanceTimersByTimeAsync(300 * MINUTE)
    expect(state.made).toBe(2)
  })

  it('is served while captures fail, until it expires; the failure is reported once', async () => {
    const { cache, state, told } = setUp()
    const first = await cache.get()
    state.fail = new CaptureError('throttled')
    await vi.advanceTimersByTimeAsync(60 * MINUTE - 1)
    expect(await cache.get()).toBe(first)
    await vi.advanceTimersByTimeAsync(1)
    expect(cache.current).toBeUndefined()
    expect(cache.last).toBe(first)
    expect(await refusal(cache.get())).toEqual([
      'attestation_unavailable',
      503,
      'the host throttled report requests for a minute',
    ])
    expect(told).toEqual(['the host throttled report requests for a minute'])
    state.fail = undefined
    await vi.advanceTimersByTimeAsync(MINUTE)
    expect(cache.current).toBeDefined()
    expect(told).toHaveLength(2)
    expect(told[1]).toBe('restored')
  })

  it('shares a failure for two seconds instead of asking the firmware again', async () => {
    const { cache, state } = setUp()
    state.fail = new CaptureError('busy')
    await refusal(cache.get())
    await refusal(cache.get())
    expect(state.made).toBe(1)
    await vi.advanceTimersByTimeAsync(2000)
    await refusal(cache.get())
    expect(state.made).toBe(2)
  })

  it('is not replaced by a capture that began before the keys changed', async () => {
    const { cache, state } = setUp()
    await cache.get()
    state.delayMs = 100
    const late = cache.refresh()
    const adopted = keptEnvelope({ issued: 99, capturedAt: Date.now() })
    cache.adopt(adopted)
    await vi.advanceTimersByTimeAsync(100)
    expect(await late).toBe(adopted)
    expect(cache.current).toBe(adopted)
  })

  it('is found by digest with its exact bytes, former ones too', async () => {
    const { cache } = setUp()
    const first = await cache.get()
    const second = await cache.refresh()
    expect(cache.find(first.sha256)).toEqual(utf8(first.json))
    expect(cache.find(second.sha256)).toEqual(utf8(second.json))
    expect(cache.find('00'.repeat(32))).toBeUndefined()
  })

  it('keeps 64 former ones', async () => {
    const { cache } = setUp()
    const first = await cache.get()
    for (let i = 0; i < 63; i++) await cache.refresh()
    expect(cache.find(first.sha256)).toBeDefined()
    await cache.refresh()
    expect(cache.find(first.sha256)).toBeUndefined()
  })
})

describe('envelopes for a nonce', () => {
  it('are captured each time and not cached', async () => {
    const { cache, state } = setUp()
    const cached = await cache.get()
    const fresh = await cache.fresh(NONCE, 'source')
    expect(fresh.envelope.report_data_binding?.nonce).toBe(NONCE)
    expect(await cache.get()).toBe(cached)
    expect(state.made).toBe(2)
  })

  it('are given sixty times in any minute', async () => {
    const { cache } = setUp()
    for (let i = 0; i < 60; i++) await cache.fresh(NONCE, `source ${i}`)
    const message = 'at most 10 nonces a minute of one source, and 60 of all'
    const refused = ['rate_limited', 429, message]
    expect(await refusal(cache.fresh(NONCE, 'source'))).toEqual(refused)
    await vi.advanceTimersByTimeAsync(MINUTE - 1)
    expect(await refusal(cache.fresh(NONCE, 'source'))).toEqual(refused)
    await vi.advanceTimersByTimeAsync(1)
    await cache.fresh(NONCE, 'source')
    cache.close()
  })

  it('are given ten times in any minute to one source, and others go on', async () => {
    const { cache } = setUp()
    for (let i = 0; i < 10; i++) await cache.fresh(NONCE, 'a')
    expect((await refusal(cache.fresh(NONCE, 'a'))).slice(0, 2)).toEqual(['rate_limited', 429])
    await cache.fresh(NONCE, 'b')
    cache.close()
  })

  it('are refused as unavailable when the capture fails', async () => {
    const { cache, state } = setUp()
    state.fail = new CaptureError('reports_disabled')
    expect((await refusal(cache.fresh(NONCE, 'source'))).slice(0, 2)).toEqual([
      'attestation_unavailable',
      503,
    ])
  })
})
