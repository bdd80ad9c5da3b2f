import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { CollectedHash } from '../../../src/enclave/egress/collected-hash.ts'

const bytes = Uint8Array.from({ length: 40_000 }, (_, index) => index % 251)
const whole = createHash('sha256').update(bytes).digest('hex')

it.each([[1], [210], [4_095], [4_096], [4_097], [30_000], [40_000]])(
  'the digest of bytes in pieces of %i is that of all of them',
  (size) => {
    const hash = new CollectedHash()
    for (let at = 0; at < bytes.length; at += size) hash.update(bytes.subarray(at, at + size))
    expect(hash.finish()).toBe(whole)
  },
)

it('the digest does not depend on the order of small and large pieces', () => {
  const hash = new CollectedHash()
  const cuts = [0, 3, 9_000, 9_000, 9_001, 13_097, 13_098, 17_194, 39_999, 40_000]
  for (const [index, from] of cuts.entries()) hash.update(bytes.subarray(from, cuts[index + 1]))
  expect(hash.finish()).toBe(whole)
})

it('the digest of nothing is that of no bytes', () => {
  expect(new CollectedHash().finish()).toBe(createHash('sha256').digest('hex'))
})

it('a piece may change once it was taken', () => {
  const hash = new CollectedHash()
  const piece = new Uint8Array([1, 2, 3])
  hash.update(piece)
  piece.fill(0)
  expect(hash.finish()).toBe(
    createHash('sha256')
      .update(new Uint8Array([1, 2, 3]))
      .digest('hex'),
  )
})
