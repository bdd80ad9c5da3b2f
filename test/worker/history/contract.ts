import { describe, expect, test } from 'vitest'
import { addCounts, readSteps, type Count } from '../../../src/worker/history/store.ts'
import type { Database } from '../../../src/worker/storage/database.ts'
import { sql } from '../../../src/worker/storage/sql.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const NOON = Date.parse('2026-11-22T12:00:00Z')

/** What the history must do alike on every engine; `instances` are two of the worker. */
export function describeHistory(instances: (id: string) => readonly [Database, Database]): void {
  const count = (minute: number, value: number, label = ''): Count => {
    return { minute, series: label === '' ? 'requests' : 'errors', label, value }
  }
  const read = async (db: Database, widthSeconds: number, stepSeconds: number, from: number) => {
    const steps = await readSteps(db, { widthSeconds, stepSeconds, from })
    return [...steps]
      .toSorted(([one], [other]) => one - other)
      .map(([at, step]) => ({
        at,
        requests: step.get('requests')?.get(''),
        errors: Object.fromEntries(step.get('errors') ?? []),
      }))
  }

  describe('the history', () => {
    test('adds up what several workers counted, by minute, by hour and by longer steps', async () => {
      const [left, right] = instances('history-sum')
      const racing = Array.from({ length: 20 }, (_, index) =>
        addCounts(
          index % 2 ? left : right,
          [count(NOON, 1), count(NOON + MINUTE, 2), count(NOON + HOUR, 3), count(NOON, 1, '429 x')],
          NOON,
        ),
      )
      await Promise.all(racing)
      expect(await read(left, 60, 60, NOON)).toEqual([
        { at: NOON, requests: 20n, errors: { '429 x': 20n } },
        { at: NOON + MINUTE, requests: 40n, errors: {} },
        { at: NOON + HOUR, requests: 60n, errors: {} },
      ])
      expect(await read(right, 3600, 3600, NOON)).toEqual([
        { at: NOON, requests: 60n, errors: { '429 x': 20n } },
        { at: NOON + HOUR, requests: 60n, errors: {} },
      ])
      expect(await read(right, 3600, 6 * 3600, NOON)).toEqual([
        { at: NOON, requests: 120n, errors: { '429 x': 20n } },
      ])
    })

    test('accepts more counts at once than a statement has parameters, and amounts beyond 32 bits', async () => {
      const [left] = instances('history-many')
      const begin = NOON + 10 * DAY
      const many = Array.from({ length: 60 }, (_, index) => count(begin, 1, `500 code-${index}`))
      await addCounts(left, [...many, count(begin, 9_000_000_000_000)], begin)
      const [step] = await read(left, 60, 60, begin)
      expect(step?.requests).toBe(9_000_000_000_000n)
      expect(Object.keys(step?.errors ?? {})).toHaveLength(60)
    })

    test('drops minutes after some hours, and hours after three months', async () => {
      const [left] = instances('history-old')
      const begin = NOON + 30 * DAY
      await addCounts(left, [count(begin, 7)], begin)
      const widths = async () => {
        const [rows = []] = await left.batch([
          sql`SELECT width_seconds FROM history WHERE starts_at = ${begin} ORDER BY width_seconds`,
        ])
        return rows.map((row) => Number(row['width_seconds']))
      }
      expect(await widths()).toEqual([60, 3600])
      await addCounts(left, [count(begin + 12 * HOUR, 1)], begin + 12 * HOUR)
      expect(await widths()).toEqual([3600])
      await addCounts(left, [count(begin + 90 * DAY, 1)], begin + 90 * DAY)
      expect(await widths()).toEqual([3600])
      await addCounts(left, [count(begin + 93 * DAY, 1)], begin + 93 * DAY)
      expect(await widths()).toEqual([])
    })
  })
}
