import * as fc from 'fast-check'
import { mutated, objectText, oddValue, randomBytes } from './json-texts.ts'

/** Bodies of chat requests, from ones a library might send down to noise. */

export const MODELS = ['glm', 'alpha/glm', 'eu/alpha/glm', 'ocr', 'auto'] as const

const json = (value: unknown) => JSON.stringify(value)
const text = fc.string({ unit: 'grapheme', maxLength: 60 })

const part = fc.oneof(
  text.map((value) => ({ type: 'text', text: value })),
  fc
    .constantFrom('data:image/png;base64,iVBORw0KGgo=', 'https://example.test/x.png', 'data:,', '')
    .map((url) => ({ type: 'image_url', image_url: { url } })),
  fc.constant({ type: 'input_audio', input_audio: { data: '', format: 'wav' } }),
)

const plainMessage = fc
  .record({ role: fc.constantFrom('system', 'user', 'assistant'), content: text })
  .map(json)

const anyMessage = fc
  .record(
    {
      role: fc.constantFrom('system', 'user', 'assistant', 'tool', 'developer', 'nobody'),
      content: fc.oneof(text, fc.array(part, { maxLength: 3 }), fc.constant(null)),
      name: text,
      tool_call_id: text,
      reasoning: text,
      reasoning_content: text,
      tool_calls: fc.array(
        fc.record({ id: text, type: fc.constant('function'), function: fc.jsonValue() }),
        { maxLength: 2 },
      ),
    },
    { requiredKeys: ['role', 'content'] },
  )
  .map(json)

const message = fc.oneof(
  { weight: 20, arbitrary: plainMessage },
  { weight: 4, arbitrary: anyMessage },
  { weight: 1, arbitrary: oddValue },
)
const messages = fc
  .array(message, { minLength: 1, maxLength: 4 })
  .map((all) => `[${all.join(',')}]`)

/** A sound value at most times, and an odd one at others. */
function mostly(...values: readonly unknown[]): fc.Arbitrary<string> {
  const sound = fc.constantFrom(...values.map(json))
  return fc.oneof({ weight: 12, arbitrary: sound }, { weight: 1, arbitrary: oddValue })
}

const OPTIONS: readonly (readonly [string, fc.Arbitrary<string>])[] = [
  ['stream', mostly(true, false)],
  ['stream_options', mostly({ include_usage: true }, {}, { include_usage: false })],
  ['temperature', mostly(0, 0.5, 2, 1, 3)],
  ['top_p', mostly(1, 0)],
  ['max_tokens', mostly(1, 100, 100_000, 0)],
  ['max_completion_tokens', mostly(1, 100)],
  ['n', mostly(1, 2, 128)],
  ['stop', mostly('x', ['a', 'b'])],
  ['tools', mostly([], [{ type: 'function', function: { name: 'f', parameters: {} } }])],
  ['tool_choice', mostly('auto', 'none')],
  ['response_format', mostly({ type: 'json_object' }, { type: 'text' })],
  ['reasoning', mostly('high', 'off', 'low')],
  ['reasoning_effort', mostly('high', 'minimal')],
  ['include_reasoning', mostly(true, false)],
  ['failover', mostly(['glm'], ['alpha/glm', 'ocr'], [], ['none'])],
  ['seed', mostly(1)],
  ['logprobs', mostly(true)],
  ['user', mostly('u')],
  ['service', mostly({ x: 1 })],
]

const option = fc
  .oneof(
    { weight: 12, arbitrary: fc.constantFrom(...OPTIONS) },
    { weight: 1, arbitrary: fc.tuple(text, fc.constant(oddValue)) },
  )
  .chain(([name, value]) => value.map((given) => [name, given] as const))

const model = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom(...MODELS).map(json) },
  { weight: 1, arbitrary: text.map(json) },
  { weight: 1, arbitrary: oddValue },
)

const members = fc
  .tuple(model, messages, fc.array(option, { maxLength: 5 }))
  .map(([name, list, options]) => [['model', name], ['messages', list], ...options] as const)

const sound = objectText(members).map((body) => Buffer.from(body))

export const chatBody: fc.Arbitrary<Buffer> = fc.oneof(
  { weight: 12, arbitrary: sound },
  { weight: 4, arbitrary: mutated(sound) },
  { weight: 1, arbitrary: oddValue.map((value) => Buffer.from(value)) },
  { weight: 1, arbitrary: randomBytes },
)
