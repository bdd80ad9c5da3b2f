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
  const keeper = new EnvelopeCache({
    make,
    buildFresh: make,
    now: Date.now,
    onFailure: (reason) => told.push(reason),
    onRestored: () => told.push('restored'),
  })
  return { keeper, state, told }
}

async function refusal(work: Promise<unknown>): Promise<readonly [string, number, string]> {
  const error: unknown = await work.catch((thrown: unknown) => thrown)
  if (error instanceof LinkError) return [error.code, error.status, error.message]
  throw new Error('not refused', { cause: error })
}

describe('the cached envelope', () => {
  it('is captured once for all who ask at the same time, and then kept', async () => {
    const { keeper, state } = setUp()
    const [first, second] = await Promise.all([keeper.get(), keeper.get()])
    expect(first).toBe(second)
    expect(await keeper.get()).toBe(first)
    expect(state.made).toBe(1)
  })

  it('is captured again every half hour', async () => {
    const { keeper, state } = setUp()
    await keeper.get()
    await vi.advanceTimersByTimeAsync(30 * MINUTE - 1)
    expect(state.made).toBe(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(state.made).toBe(2)
    keeper.close()
    await vi.advanceTimersByTimeAsync(300 * MINUTE)
    expect(state.made).toBe(2)
  })

  it('is served while captures fail, until it expires; the failure is reported once', async () => {
    const { keeper, state, told } = setUp()
    const first = await keeper.get()
    state.fail = new CaptureError('throttled')
    await vi.advanceTimersByTimeAsync(60 * MINUTE - 1)
    expect(await keeper.get()).toBe(first)
    await vi.advanceTimersByTimeAsync(1)
    expect(keeper.current).toBeUndefined()
    expect(keeper.last).toBe(first)
    expect(await refusal(keeper.get())).toEqual([
      'attestation_unavailable',
      503,
      'the host throttled report requests for a minute',
    ])
    expect(told).toEqual(['the host throttled report requests for a minute'])
    state.fail = undefined
    await vi.advanceTimersByTimeAsync(MINUTE)
    expect(keeper.current).toBeDefined()
    expect(told).toHaveLength(2)
    expect(told[1]).toBe('restored')
  })

  it('shares a failure for two seconds instead of asking the firmware again', async () => {
    const { keeper, state } = setUp()
    state.fail = new CaptureError('busy')
    await refusal(keeper.get())
    await refusal(keeper.get())
    expect(state.made).toBe(1)
    await vi.advanceTimersByTimeAsync(2000)
    await refusal(keeper.get())
    expect(state.made).toBe(2)
  })

  it('is not replaced by a capture that began before the keys changed', async () => {
    const { keeper, state } = setUp()
    await keeper.get()
    state.delayMs = 100
    const late = keeper.refresh()
    const adopted = keptEnvelope({ issued: 99, capturedAt: Date.now() })
    keeper.adopt(adopted)
    await vi.advanceTimersByTimeAsync(100)
    expect(await late).toBe(adopted)
    expect(keeper.current).toBe(adopted)
  })

  it('is found by digest with its exact bytes, former ones too', async () => {
    const { keeper } = setUp()
    const first = await keeper.get()
    const second = await keeper.refresh()
    expect(keeper.find(first.sha256)).toEqual(utf8(first.json))
    expect(keeper.find(second.sha256)).toEqual(utf8(second.json))
    expect(keeper.find('00'.repeat(32))).toBeUndefined()
  })

  it('keeps 64 former ones', async () => {
    const { keeper } = setUp()
    const first = await keeper.get()
    for (let i = 0; i < 63; i++) await keeper.refresh()
    expect(keeper.find(first.sha256)).toBeDefined()
    await keeper.refresh()
    expect(keeper.find(first.sha256)).toBeUndefined()
  })
})

describe('envelopes for a nonce', () => {
  it('are captured each time and not cached', async () => {
    const { keeper, state } = setUp()
    const cached = await keeper.get()
    const fresh = await keeper.fresh(NONCE, 'source')
    expect(fresh.envelope.report_data_binding?.nonce).toBe(NONCE)
    expect(await keeper.get()).toBe(cached)
    expect(state.made).toBe(2)
  })

  it('are given sixty times in any minute', async () => {
    const { keeper } = setUp()
    for (let i = 0; i < 60; i++) await keeper.fresh(NONCE, `source ${i}`)
    const message = 'at most 10 nonces a minute of one source, and 60 of all'
    const refused = ['rate_limited', 429, message]
    expect(await refusal(keeper.fresh(NONCE, 'source'))).toEqual(refused)
    await vi.advanceTimersByTimeAsync(MINUTE - 1)
    expect(await refusal(keeper.fresh(NONCE, 'source'))).toEqual(refused)
    await vi.advanceTimersByTimeAsync(1)
    await keeper.fresh(NONCE, 'source')
    keeper.close()
  })

  it('are given ten times in any minute to one source, and others go on', async () => {
    const { keeper } = setUp()
    for (let i = 0; i < 10; i++) await keeper.fresh(NONCE, 'a')
    expect((await refusal(keeper.fresh(NONCE, 'a'))).slice(0, 2)).toEqual(['rate_limited', 429])
    await keeper.fresh(NONCE, 'b')
    keeper.close()
  })

  it('are refused as unavailable when the capture fails', async () => {
    const { keeper, state } = setUp()
    state.fail = new CaptureError('reports_disabled')
    expect((await refusal(keeper.fresh(NONCE, 'source'))).slice(0, 2)).toEqual([
      'attestation_unavailable',
      503,
    ])
  })
})
