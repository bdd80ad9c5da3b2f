import { describe, expect, test } from 'vitest'
import {
  OPTIONS,
  SERVICE,
  goldenStreams,
  providerBytes,
  replay,
  type GoldenStream,
} from '../../support/golden-streams.ts'

/** The exact text a client must receive. */
function expectedText(golden: GoldenStream): string {
  const { id, created, model } = OPTIONS
  const fixed = { id, object: 'chat.completion.chunk', created, model }
  const chunks: object[] = golden.chunks.map(({ delta, logprobs }) => ({
    ...fixed,
    choices: [{ index: 0, delta, ...(logprobs && { logprobs }), finish_reason: null }],
  }))
  const { outcome } = golden
  if ('broken' in outcome) return chunks.map(asEvent).join('')
  const { finish_reason, usage } = outcome
  chunks.push({
    ...fixed,
    choices: [{ index: 0, delta: {}, finish_reason }],
    ...(usage !== null && { usage }),
    service: SERVICE,
  })
  return `${chunks.map(asEvent).join('')}data: [DONE]\n\n`
}

function asEvent(chunk: object): string {
  return `data: ${JSON.stringify(chunk)}\n\n`
}

describe.each(goldenStreams())('$provider: $name ($file)', (golden) => {
  const options = { ...OPTIONS, ...golden.options }
  const bytes = providerBytes(golden)
  const whole = replay([bytes], options)

  test('the client receives exactly the expected chunks', () => {
    expect(whole.text).toBe(expectedText(golden))
  })

  test('the outcome is as expected', () => {
    expect(whole.outcome).toMatchObject(golden.outcome)
  })

  test('failure 13, 14: a cut at any byte changes nothing', () => {
    const { text, outcome } = whole
    for (let cut = 0; cut <= bytes.length; cut++) {
      const halves = replay([bytes.subarray(0, cut), bytes.subarray(cut)], options)
      expect(halves.text, `cut at ${cut}`).toBe(text)
      expect(halves.outcome).toEqual(outcome)
    }
  })

  test('bytes that come one by one change nothing', () => {
    const { stream, ...bytewise } = replay(
      Array.from(bytes, (byte) => Uint8Array.of(byte)),
      options,
    )
    expect(bytewise).toEqual({ text: whole.text, outcome: whole.outcome })
    expect(stream.uncountedTextBytes).toBe(whole.stream.uncountedTextBytes)
    expect(stream.openingFrames).toBe(whole.stream.openingFrames)
    expect(stream.done).toBe(whole.stream.done)
  })
})
