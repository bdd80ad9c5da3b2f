import * as fc from 'fast-check'

/** JSON as a hostile client writes it: sound, odd, mutated, or none at all. */

/** Valid but unexpected values, as JSON text. */
const ODD_VALUES = [
  '1e400',
  '-0',
  '0.1e-400',
  '123456789012345678901234567890',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\u0000"',
  '"\u2028"',
  '"\u{1F600}"',
  '[]',
  '{}',
  'null',
  'true',
  '{"__proto__": {"model": "glm"}}',
  `${'['.repeat(200)}${']'.repeat(200)}`,
  `${'{"a":'.repeat(2_000)}1${'}'.repeat(2_000)}`,
  `"${'x'.repeat(70_000)}"`,
]

export const oddValue = fc.oneof(
  { weight: 1, arbitrary: fc.constantFrom(...ODD_VALUES) },
  { weight: 2, arbitrary: fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.stringify(value)) },
)

/** Members of an object as text, in some order, some of them twice. */
export function objectText(members: fc.Arbitrary<readonly (readonly [string, string])[]>) {
  const space = fc.constantFrom('', '', '', ' ', '\n\t', '\r\n')
  return fc.tuple(members, space).map(([pairs, gap]) => {
    const texts = pairs.map(([name, value]) => `${JSON.stringify(name)}${gap}:${gap}${value}`)
    return `${gap}{${texts.join(`,${gap}`)}}${gap}`
  })
}

type Mutation = (bytes: Buffer) => Buffer

const place = fc.double({ min: 0, max: 1, noNaN: true })

const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc
    .tuple(place, fc.uint8Array({ minLength: 1, maxLength: 8 }))
    .map(([at, bytes]) => (whole: Buffer) => {
      const index = Math.floor(at * whole.length)
      return Buffer.concat([whole.subarray(0, index), bytes, whole.subarray(index)])
    }),
  fc.tuple(place, fc.nat(40)).map(([at, length]) => (whole: Buffer) => {
    const index = Math.floor(at * whole.length)
    return Buffer.concat([whole.subarray(0, index), whole.subarray(index + length)])
  }),
  fc.tuple(place, fc.nat(60)).map(([at, length]) => (whole: Buffer) => {
    const index = Math.floor(at * whole.length)
    const piece = whole.subarray(index, index + length)
    return Buffer.concat([whole.subarray(0, index), piece, piece, whole.subarray(index + length)])
  }),
  fc.tuple(place, fc.nat(7)).map(([at, bit]) => (whole: Buffer) => {
    const copy = Buffer.from(whole)
    const index = Math.floor(at * (copy.length - 1))
    if (index >= 0 && copy.length > 0) copy[index] = (copy[index] ?? 0) ^ (1 << bit)
    return copy
  }),
  fc.constantFrom<Mutation>(
    (whole) => Buffer.concat([Buffer.from('\ufeff'), whole]),
    (whole) => Buffer.concat([whole, whole]),
    (whole) => whole.subarray(0, whole.length / 2),
    (whole) => Buffer.from(whole.toString('utf8'), 'utf16le'),
  ),
)

/** The bytes with a few things done to them. */
export function mutated(bytes: fc.Arbitrary<Buffer>): fc.Arbitrary<Buffer> {
  return fc
    .tuple(bytes, fc.array(mutation, { minLength: 1, maxLength: 3 }))
    .map(([whole, changes]) => changes.reduce((now, change) => change(now), whole))
}

export const randomBytes = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes))
