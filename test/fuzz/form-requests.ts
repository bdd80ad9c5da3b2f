import * as fc from 'fast-check'
import { everySample } from '../support/audio-samples.ts'
import { mutated, randomBytes } from './json-texts.ts'

/** Bodies of transcription requests: forms, almost forms, and noise. */

const SOUND = everySample().map(({ bytes }) => bytes)
const FIELDS = [
  ['language', 'en'],
  ['prompt', 'Names: Zoë'],
  ['response_format', 'json'],
  ['response_format', 'verbose_json'],
  ['response_format', 'text'],
  ['temperature', '0'],
  ['region', 'eu'],
] as const

const text = fc.string({ unit: 'grapheme', maxLength: 40 })

const field = fc
  .oneof(
    { weight: 6, arbitrary: fc.constantFrom(...FIELDS) },
    { weight: 1, arbitrary: fc.tuple(text, text) },
    { weight: 1, arbitrary: fc.tuple(fc.constantFrom(...FIELDS.map(([name]) => name)), text) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(['stream', 'true'] as const, ['model', 'glm'] as const),
    },
  )
  .map(([name, value]) => Buffer.from(`form-data; name="${name}"\r\n\r\n${value}`))

const sound = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(...SOUND) },
  { weight: 2, arbitrary: mutated(fc.constantFrom(...SOUND)) },
  { weight: 1, arbitrary: randomBytes },
)

const file = fc
  .tuple(
    fc.constantFrom('a.wav', 'a.mp3', '', 'a"b', '../../x', 'ä.webm'),
    fc.constantFrom('audio/wav', 'audio/mpeg', 'application/octet-stream', 'text/html', ''),
    sound,
  )
  .map(([name, type, bytes]) =>
    Buffer.concat([
      Buffer.from(`form-data; name="file"; filename="${name}"\r\nContent-Type: ${type}\r\n\r\n`),
      bytes,
    ]),
  )

const model = fc.constant(Buffer.from('form-data; name="model"\r\n\r\nwhisper'))

const parts = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(model, file, field) },
  { weight: 2, arbitrary: fc.array(fc.oneof(model, file, field), { maxLength: 6 }) },
)

const form = fc
  .tuple(
    parts,
    fc.constantFrom(...Array<string>(12).fill('--x--\r\n'), '--x--', '', '--x\r\n', '--y--\r\n'),
  )
  .map(([list, end]) => {
    const pieces = list.flatMap((part) => [
      Buffer.from('--x\r\nContent-Disposition: '),
      part,
      Buffer.from('\r\n'),
    ])
    return Buffer.concat([...pieces, Buffer.from(end)])
  })

export const formBody: fc.Arbitrary<Buffer> = fc.oneof(
  { weight: 5, arbitrary: form },
  { weight: 2, arbitrary: mutated(form) },
  { weight: 1, arbitrary: randomBytes },
)

export const formType = fc.oneof(
  { weight: 20, arbitrary: fc.constant('multipart/form-data; boundary=x') },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      'multipart/form-data',
      'multipart/form-data; boundary=',
      'multipart/form-data; boundary="x"',
      `multipart/form-data; boundary=${'x'.repeat(200)}`,
      'application/json',
      'multipart/mixed; boundary=x',
      ';',
    ),
  },
)
