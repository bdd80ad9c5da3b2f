import { beforeEach, describe, expect, test } from 'vitest'
import type { Log } from '../../../src/worker/http/log.ts'
import { HistoryRecorder } from '../../../src/worker/history/recorder.ts'
import type { Count } from '../../../src/worker/history/store.ts'
import { loggingTo } from '../../support/logging-to.ts'

const NOON = Date.parse('2026-11-22T12:00:00Z')

let now: number
let stored: (readonly Count[])[]
let away: boolean
let paused: () => Promise<void>
let recorder: HistoryRecorder

beforeEach(() => {
  now = NOON
  stored = []
  away = false
  paused = async () => {}
  recorder = new HistoryRecorder({
    now: () => now,
    pause: () => paused(),
    isKeyed: (name) => name === 'chat',
    store: async (counts) => {
      if (away) throw new Error('the storage is away')
      stored.push(counts)
    },
  })
})

const log: Log = (event, fields) => loggingTo(recorder.count, () => now)(event, fields)

const flat = () => stored.flat().map(({ series, label, value }) => [series, label, value].join(' '))

describe('the recorder of the history', () => {
  test('counts what customers did, by code, time, tokens and cost, and nothing of operators', async () => {
    log('request', { endpoint: 'chat', status: 200, duration_ms: 12 })
    log('request', { endpoint: 'chat', status: 429, code: 'rate_limit_exceeded', duration_ms: 2 })
    log('request', { endpoint: 'admin.metrics', status: 200, duration_ms: 1 })
    log('request', { endpoint: 'none', status: 404, code: 'not_found', duration_ms: 1 })
    log('attempt_served', { route: 'a', failover: true, first_delta_ms: 240 })
    log('settled', { prompt_tokens: 3, completion_tokens: 4, cost_nano: 1200 })
    await recorder.writeSoon()
    expect(flat().toSorted()).toEqual([
      'completion_tokens  4',
      'cost  1200',
      'duration 25 1',
      'duration 5 1',
      'errors 429 rate_limit_exceeded 1',
      'failovers  1',
      'first_delta 300 1',
      'prompt_tokens  3',
      'requests  2',
    ])
    expect(stored[0]?.every(({ minute }) => minute === NOON)).toBe(true)
  })

  test('stores each event once, however often it is asked, and nothing where nothing happened', async () => {
    await recorder.writeSoon()
    expect(stored).toEqual([])
    log('settled', { prompt_tokens: 1 })
    await Promise.all([recorder.writeSoon(), recorder.writeSoon()])
    await recorder.writeSoon()
    expect(flat()).toEqual(['prompt_tokens  1'])
  })

  test('is not kept from storing by a request that the runtime ended before it had stored', async () => {
    log('settled', { prompt_tokens: 1 })
    paused = () => new Promise(() => {})
    void recorder.writeSoon()
    paused = async () => {}
    now += 14_000
    expect(recorder.writeSoon()).toBeUndefined()
    now += 2_000
    await recorder.writeSoon()
    expect(flat()).toEqual(['prompt_tokens  1'])
  })

  test('keeps what a storage that is away did not take, minute by minute, two hours at most', async () => {
    away = true
    log('settled', { prompt_tokens: 1 })
    await recorder.writeSoon()
    now += 60_000
    log('settled', { prompt_tokens: 2 })
    await recorder.writeSoon()
    away = false
    await recorder.writeSoon()
    expect(stored.flat().map(({ minute, value }) => [minute - NOON, value])).toEqual([
      [0, 1],
      [60_000, 2],
    ])
    stored = []
    for (let minute = 0; minute < 500; minute++) {
      now += 60_000
      log('settled', { prompt_tokens: 1 })
    }
    await recorder.writeSoon()
    expect(stored.flat()).toHaveLength(120)
    expect(stored.flat().at(-1)?.minute).toBe(now)
  })
})
