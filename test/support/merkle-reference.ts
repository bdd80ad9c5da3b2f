import type { Bytes } from '../../src/protocol/bytes.ts'
import { concatBytes } from '../../src/protocol/bytes.ts'
import { emptyRoot, hashChildren, hashLeaf } from '../../src/verify/transparency/merkle.ts'
import { TILE_WIDTH, TileTree, type ReadTile } from '../../src/verify/transparency/tiles.ts'

/** RFC 6962 section 2.1, written down as it stands there and not for speed: what the tiles are checked against. */
export function merkleRoot(entries: readonly Uint8Array[]): Bytes {
  const [only] = entries
  if (only === undefined) return emptyRoot()
  if (entries.length === 1) return hashLeaf(only)
  let split = 1
  while (split * 2 < entries.length) split *= 2
  return hashChildren(merkleRoot(entries.slice(0, split)), merkleRoot(entries.slice(split)))
}

/** The tiles of a tree, each hash computed for itself. */
export function tilesOf(entries: readonly Uint8Array[]): ReadTile {
  return async ({ level, index, width }) => {
    const span = TILE_WIDTH ** level
    const hashes = Array.from({ length: width }, (_, at) => {
      const start = (index * TILE_WIDTH + at) * span
      return merkleRoot(entries.slice(start, start + span))
    })
    return concatBytes(...hashes)
  }
}

export function treeOf(entries: readonly Uint8Array[], size = entries.length): TileTree {
  return new TileTree(size, tilesOf(entries.slice(0, size)))
}
