import { beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Handler } from '../../../src/worker/context.ts'
import { HISTORY_OPERATION, showHistory } from '../../../src/worker/admin/history.ts'
import type { Series } from '../../../src/worker/history/series.ts'
import { addCounts } from '../../../src/worker/history/store.ts'
import { told } from '../../support/refusal.ts'
import { openSqlite, sharedStorage, type SqliteDatabase } from '../../support/sqlite-database.ts'

const NOW = Date.parse('2026-11-22T12:34:56Z')
const MINUTE = 60_000
const HOUR = 60 * MINUTE

let db: SqliteDatabase

beforeEach(() => {
  db = openSqlite()
})

const answerSchema = z.object({
  step_seconds: z.int(),
  data: z.array(z.looseObject({ at: z.string(), requests: z.int(), cost_eur: z.string() })),
})

async function ask(query = '') {
  const parts = { adminToken: 'boot', storage: sharedStorage(db), now: () => NOW }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- all that this handler touches
  const context = parts as unknown as Parameters<Handler>[1]
  const headers = { authorization: 'Bearer boot' }
  const answer = await showHistory(new Request(`http://r/${query}`, { headers }), context, {})
  const json: unknown = await answer.json()
  const [described] = Object.values(HISTORY_OPERATION.answer)
  expect(described?.schema.parse(json)).toEqual(json)
  return answerSchema.parse(json)
}

async function count(ago: number, series: Series, label: string, value: number): Promise<void> {
  const minute = NOW - ago - ((NOW - ago) % MINUTE)
  await addCounts(db, [{ minute, series, label, value }], NOW)
}

describe('GET /admin/history', () => {
  test('has a step for every minute, hour or quarter of a day, up to the one that is not over', async () => {
    for (const [hours, step, length, last] of [
      [1, 60, 60, '2026-11-22T12:34:00.000Z'],
      [6, 60, 360, '2026-11-22T12:34:00.000Z'],
      [24, 3600, 24, '2026-11-22T12:00:00.000Z'],
      [336, 3600, 336, '2026-11-22T12:00:00.000Z'],
      [2160, 21_600, 360, '2026-11-22T12:00:00.000Z'],
    ] as const) {
      const answer = await ask(`?hours=${hours}`)
      expect([answer.step_seconds, answer.data.length]).toEqual([step, length])
      expect(answer.data.at(-1)?.at).toBe(last)
    }
    expect((await ask()).data).toHaveLength(24)
  })

  test('reports errors by code, times by percentiles, tokens and cost to the last nano', async () => {
    await count(0, 'requests', '', 10)
    await count(0, 'errors', '429 rate_limit_exceeded', 2)
    await count(0, 'errors', '500 internal', 1)
    await count(0, 'duration', '100', 99)
    await count(0, 'duration', '5000', 1)
    await count(0, 'cost', '', 1_234_567_891)
    await count(0, 'prompt_tokens', '', 7)
    await count(2 * HOUR, 'requests', '', 5)
    const { data } = await ask('?hours=24')
    expect(data.at(-1)).toEqual({
      at: '2026-11-22T12:00:00.000Z',
      requests: 10,
      errors: { '429 rate_limit_exceeded': 2, '500 internal': 1 },
      first_delta_ms: null,
      duration_ms: { p50: 88, p95: 99, p99: 100 },
      prompt_tokens: 7,
      completion_tokens: 0,
      cost_eur: '1.234567891',
      failovers: 0,
    })
    expect(data.filter(({ requests }) => requests > 0)).toHaveLength(2)
    const none = { requests: 0, errors: {}, duration_ms: null, cost_eur: '0' }
    expect(data[0]).toMatchObject({ ...none, cost_eur: expect.stringMatching(/^0(\.0+)?$/) })
  })

  test('takes no other range', async () => {
    for (const query of ['?hours=0', '?hours=2161', '?hours=', '?hours=1.5', '?hours=1&hours=2']) {
      expect(await ask(query).then(() => undefined, told)).toEqual({
        code: 'invalid_parameter',
        message: 'The query parameter `hours` must be a whole number from 1 to 2160, given once.',
        param: 'hours',
      })
    }
  })
})
