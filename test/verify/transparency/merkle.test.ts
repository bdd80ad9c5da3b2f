import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fromHex, toHex, utf8, type Bytes } from '../../../src/protocol/bytes.ts'
import {
  checkConsistency,
  emptyRoot,
  hashLeaf,
  rootFromInclusion,
} from '../../../src/verify/transparency/merkle.ts'
import { TransparencyError } from '../../../src/verify/transparency/transparency-error.ts'
import { entriesPath, tilePath, tileWidth } from '../../../src/verify/transparency/tiles.ts'
import { merkleRoot, treeOf } from '../../support/merkle-reference.ts'

const entriesOf = (size: number) => Array.from({ length: size }, (_, at) => utf8(`entry ${at}`))
const sizes = fc.integer({ min: 1, max: 700 })

function flipped(hashes: readonly Bytes[], at: number): Bytes[] {
  return hashes.map((hash, index) => (index === at ? hash.with(0, (hash[0] ?? 0) ^ 1) : hash))
}

function faultOf(work: () => void): string {
  try {
    work()
    return 'none'
  } catch (error) {
    return error instanceof TransparencyError ? error.fault : 'another error'
  }
}

describe('a Merkle tree', () => {
  it('has the roots that the examples of Certificate Transparency publish', () => {
    // The leaves and roots of the reference implementation's test suite (RFC 6962 trees).
    const leaves = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657'].map(fromHex)
    expect(toHex(emptyRoot())).toBe(
      'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    )
    expect(toHex(merkleRoot(leaves.slice(0, 1)))).toBe(
      '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
    )
    expect(toHex(merkleRoot(leaves.slice(0, 2)))).toBe(
      'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
    )
    expect(toHex(merkleRoot(leaves))).toBe(
      'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
    )
  })

  it.each([
    [-1, 1],
    [1, 1],
    [2, 1],
    [0, 0],
  ])('has no entry %i where its size is %i, whatever the proof', (index, size) => {
    const leaf = hashLeaf(utf8('entry 0'))
    for (const proof of [[], [leaf]]) {
      expect(faultOf(() => rootFromInclusion(leaf, index, size, proof))).toBe('not_included')
    }
  })

  it('proves every entry of a random tree, and no other entry in its place', async () => {
    await fc.assert(
      fc.asyncProperty(sizes, fc.nat(), async (size, pick) => {
        const entries = entriesOf(size)
        const index = pick % size
        const tree = treeOf(entries)
        const root = toHex(merkleRoot(entries))
        const proof = await tree.inclusion(index)
        const leaf = hashLeaf(utf8(`entry ${index}`))
        expect(toHex(await tree.root())).toBe(root)
        expect(toHex(rootFromInclusion(leaf, index, size, proof))).toBe(root)
        const other = hashLeaf(utf8(`entry ${index + 1}`))
        expect(toHex(rootFromInclusion(other, index, size, proof))).not.toBe(root)
      }),
      { numRuns: 40, seed: 7 },
    )
  })

  it('refuses a proof with a changed, missing or additional hash', async () => {
    const entries = entriesOf(300)
    const root = toHex(merkleRoot(entries))
    const proof = await treeOf(entries).inclusion(123)
    const leaf = hashLeaf(utf8('entry 123'))
    for (const at of proof.keys()) {
      expect(toHex(rootFromInclusion(leaf, 123, 300, flipped(proof, at)))).not.toBe(root)
    }
    const refused = { name: 'TransparencyError', fault: 'not_included' }
    expect(() => rootFromInclusion(leaf, 123, 300, proof.slice(1))).toThrow(
      expect.objectContaining(refused),
    )
    expect(() => rootFromInclusion(leaf, 123, 300, [...proof, leaf])).toThrow(
      expect.objectContaining(refused),
    )
    expect(() => rootFromInclusion(leaf, 300, 300, proof)).toThrow(expect.objectContaining(refused))
  })

  it('proves that a random tree continues an earlier one, and refuses any changed hash', async () => {
    await fc.assert(
      fc.asyncProperty(sizes, sizes, async (one, two) => {
        const [older, newer] = one < two ? [one, two] : [two, one]
        const entries = entriesOf(newer)
        const heads = [older, newer].map((size) => ({
          size,
          root: merkleRoot(entries.slice(0, size)),
        }))
        const [before, after] = heads
        if (before === undefined || after === undefined) throw new Error('two heads')
        const proof = await treeOf(entries).consistency(older)
        expect(() => checkConsistency(before, after, proof)).not.toThrow()
        const faults = [...proof.keys()].map((at) =>
          faultOf(() => checkConsistency(before, after, flipped(proof, at))),
        )
        expect(faults).toEqual(proof.map(() => 'inconsistent_tree'))
      }),
      { numRuns: 40, seed: 11 },
    )
  })

  it('tells a tree that shrank, one that was rewritten, and two of one size apart', () => {
    const entries = entriesOf(9)
    const head = (size: number, of = entries) => ({ size, root: merkleRoot(of.slice(0, size)) })
    const other = [utf8('another'), ...entries.slice(1)]
    expect(() => checkConsistency(head(9), head(8), [])).toThrow(
      expect.objectContaining({
        fault: 'truncated_tree',
        message: 'the tree shrank from 9 entries to 8',
      }),
    )
    expect(() => checkConsistency(head(9), head(9, other), [])).toThrow(
      expect.objectContaining({ fault: 'equivocation' }),
    )
    expect(() => checkConsistency(head(4), head(9, other), [])).toThrow(
      expect.objectContaining({ fault: 'inconsistent_tree' }),
    )
  })
})

describe('the files of a log', () => {
  it('are named as tlog-tiles has it', () => {
    expect(tilePath({ level: 0, index: 1_234_067, width: 256 })).toBe('tile/0/x001/x234/067')
    expect(tilePath({ level: 1, index: 0, width: 17 })).toBe('tile/1/000.p/17')
    expect(entriesPath(273, 112)).toBe('tile/entries/273.p/112')
  })

  it('have the widths of its example of 70,000 entries', () => {
    expect(tileWidth(0, 272, 70_000)).toBe(256)
    expect(tileWidth(0, 273, 70_000)).toBe(112)
    expect(tileWidth(1, 1, 70_000)).toBe(17)
    expect(tileWidth(2, 0, 70_000)).toBe(1)
    expect(tileWidth(1, 0, 256)).toBe(1)
    expect(tileWidth(0, 1, 256)).toBe(0)
  })
})
