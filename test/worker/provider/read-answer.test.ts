import { describe, expect, test } from 'vitest'
import { utf8, type Bytes } from '../../../src/protocol/bytes.ts'
import { inOneStep } from '../../../src/worker/json/steps.ts'
import { openSharedLimits } from '../../../src/worker/limits/shared-limits.ts'
import { readAnswer } from '../../../src/worker/provider/read-answer.ts'
import type { JsonObject } from '../../../src/worker/stream/json-object.ts'

const MIB = 1024 * 1024

/** Reads the answer's names, and says how often others could run meanwhile. */
async function namesOf(bytes: Bytes) {
  let pauses = 0
  const pause = async () => void (pauses += 1)
  const { largeAnswers } = openSharedLimits(Date.now)
  const turn = { customerId: 'one', largeAnswers, now: () => 0, pause }
  const read = (answer: JsonObject) => inOneStep(() => Object.keys(answer))
  const names = await readAnswer(bytes, turn, read)
  return { names, pauses }
}

const unclassified = { name: 'AttemptFailure', failure: { kind: 'unclassified' } }
const large = (more: string) => utf8(`{"content": "${'x'.repeat(MIB)}"${more}}`)

describe('an answer', () => {
  test('is read at once where it is small, and with pauses where it is large', async () => {
    expect(await namesOf(utf8('{"a": 1}'))).toEqual({ names: ['a'], pauses: 0 })
    const { names, pauses } = await namesOf(large(`, "n": [${'{},'.repeat(200_000)}{}]`))
    expect(names).toEqual(['content', 'n'])
    expect(pauses).toBeGreaterThan(8)
  })

  test('may begin with a byte order mark, whatever its size', async () => {
    const mark = new Uint8Array([0xef, 0xbb, 0xbf])
    for (const body of [utf8('{"a": 1}'), large('')]) {
      expect((await namesOf(new Uint8Array([...mark, ...body]))).names).toHaveLength(1)
    }
  })

  test.each([
    ['is not JSON', large(', x')],
    ['is no object', utf8(`["${'x'.repeat(MIB)}"]`)],
    ['is small and not JSON', utf8('{')],
  ])('that %s is the failure of its provider', async (_what, bytes) => {
    await expect(namesOf(bytes)).rejects.toMatchObject(unclassified)
  })

  test('that has more values than memory for one is refused by the router, and no failure of its provider', async () => {
    const values = large(`, "n": [${'{},'.repeat(2 * MIB)}{}]`)
    await expect(namesOf(values)).rejects.toMatchObject({ code: 'answer_too_long' })
  })

  test('waits while another large one is read', async () => {
    const { largeAnswers } = openSharedLimits(Date.now)
    const order: string[] = []
    let clock = 0
    const turnOf = (customerId: string) => ({
      customerId,
      largeAnswers,
      now: () => clock,
      pause: async () => {
        clock += 1
        if (order.at(-1) !== customerId) order.push(customerId)
      },
    })
    const read = (answer: JsonObject) => inOneStep(() => Object.keys(answer).length)
    const first = readAnswer(large(''), turnOf('one'), (answer) => {
      order.push('first read')
      return read(answer)
    })
    const second = readAnswer(large(''), turnOf('two'), (answer) => {
      order.push('second read')
      return read(answer)
    })
    await Promise.all([first, second])
    expect(order.indexOf('first read')).toBeLessThan(order.indexOf('second read'))
  })
})
