import { describe, expect, it } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { checkAnswerSize } from '../../../src/worker/provider/answer-size.ts'

const MIB = 1024 * 1024

async function outcomeOf(text: string) {
  let pauses = 0
  const pause = async () => void (pauses += 1)
  const refusal = await checkAnswerSize(utf8(text), pause).then(
    () => undefined,
    (error: unknown) => error,
  )
  return { pauses, refusal }
}

const tooMany = { name: 'AttemptFailure', failure: { kind: 'unclassified' } }

describe('the number of values of an answer', () => {
  it('is bounded: sixteen mebibytes of empty objects, nested arrays or digits are refused', async () => {
    const texts = [
      `[${'{},'.repeat(5 * MIB)}{}]`,
      '['.repeat(16 * MIB),
      `[${'1,'.repeat(8 * MIB)}1]`,
    ]
    for (const text of texts) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other: each is large
      expect((await outcomeOf(text)).refusal).toMatchObject(tooMany)
    }
  })

  it('does not count what stands in strings, whatever is escaped there', async () => {
    const content = String.raw`{},[\"{,\\`.repeat(MIB)
    const { refusal, pauses } = await outcomeOf(`{"content": "${content}", "n": [1, 2, {}]}`)
    expect(refusal).toBeUndefined()
    expect(pauses).toBeGreaterThan(15)
  })

  it('is counted again after a string that ends in an escaped backslash', async () => {
    const { refusal } = await outcomeOf(`["${'x'.repeat(MIB)}\\\\",${'{},'.repeat(MIB)}{}]`)
    expect(refusal).toMatchObject(tooMany)
  })

  it('allows 8,192 tokens with twenty alternatives each', async () => {
    const alternative = { token: 'a', logprob: -1.5, bytes: null }
    const token = { ...alternative, top_logprobs: Array.from({ length: 20 }, () => alternative) }
    const answer = { logprobs: { content: Array.from({ length: 8_192 }, () => token) } }
    expect((await outcomeOf(JSON.stringify(answer))).refusal).toBeUndefined()
  })

  it('is not looked at in a small answer', async () => {
    expect(await outcomeOf('{},'.repeat(80_000))).toEqual({ pauses: 0, refusal: undefined })
  })
})
