import { concatBytes, type Bytes } from '../../protocol/bytes.ts'
import { emptyRoot, HASH_BYTES, hashChildren } from './merkle.ts'
import { TransparencyError } from './transparency-error.ts'

/**
 * A log's Merkle tree as static files (c2sp.org/tlog-tiles): tiles of up to 256 hashes, from which every proof can be
 * computed.
 */

export const TILE_WIDTH = 256

/** The address of a tile: its level, its index in the level, and its number of hashes. */
export interface TileAddress {
  readonly level: number
  readonly index: number
  readonly width: number
}

/** Reads a tile of exactly the given width. */
export type ReadTile = (tile: TileAddress) => Promise<Bytes>

/** The path below the log's prefix, such as `tile/0/x001/234.p/17`. */
export function tilePath({ level, index, width }: TileAddress): string {
  return `tile/${level}/${numberPath(index, width)}`
}

/** The path of the bundle with the entries of a tile of level 0. */
export function entriesPath(index: number, width: number): string {
  return `tile/entries/${numberPath(index, width)}`
}

function numberPath(index: number, width: number): string {
  const digits = String(index)
  const padded = digits.padStart(Math.ceil(digits.length / 3) * 3, '0')
  const parts = padded.match(/\d{3}/g) ?? []
  const path = parts.map((part, at) => (at < parts.length - 1 ? `x${part}` : part)).join('/')
  return width === TILE_WIDTH ? path : `${path}.p/${width}`
}

/** Number of hashes in the tile, in a tree of this size; 0: the tile does not exist. */
export function tileWidth(level: number, index: number, size: number): number {
  const hashes = Math.floor(size / TILE_WIDTH ** level)
  return Math.max(0, Math.min(TILE_WIDTH, hashes - index * TILE_WIDTH))
}

/** Computes hashes and proofs of a tree of `size` entries from its tiles. */
export class TileTree {
  readonly size: number
  readonly #read: ReadTile
  readonly #tiles = new Map<string, Promise<Bytes>>()

  constructor(size: number, read: ReadTile) {
    this.size = size
    this.#read = read
  }

  root(): Promise<Bytes> {
    return this.hash(0, this.size)
  }

  /** MTH(D[start:end]) of RFC 6962 section 2.1; the range must be one that occurs in that section's recursion. */
  async hash(start: number, end: number): Promise<Bytes> {
    if (start === end) return emptyRoot()
    const width = end - start
    if (isPowerOfTwo(width) && start % width === 0) return this.#subtree(start, width)
    const split = largestPowerBelow(width)
    const [left, right] = await Promise.all([
      this.hash(start, start + split),
      this.hash(start + split, end),
    ])
    return hashChildren(left, right)
  }

  /** The inclusion proof of an entry (RFC 6962 section 2.1.1), from its sibling upwards. */
  async inclusion(index: number): Promise<Bytes[]> {
    return this.#path(index, 0, this.size)
  }

  /** The proof that this tree continues one of `older` entries (RFC 6962 section 2.1.2). */
  async consistency(older: number): Promise<Bytes[]> {
    if (older === 0 || older === this.size) return []
    return this.#continues(older, 0, this.size, true)
  }

  async #path(index: number, start: number, end: number): Promise<Bytes[]> {
    if (end - start <= 1) return []
    const middle = start + largestPowerBelow(end - start)
    return index < middle
      ? [...(await this.#path(index, start, middle)), await this.hash(middle, end)]
      : [...(await this.#path(index, middle, end)), await this.hash(start, middle)]
  }

  async #continues(older: number, start: number, end: number, whole: boolean): Promise<Bytes[]> {
    if (older === end) return whole ? [] : [await this.hash(start, end)]
    const middle = start + largestPowerBelow(end - start)
    return older <= middle
      ? [...(await this.#continues(older, start, middle, whole)), await this.hash(middle, end)]
      : [...(await this.#continues(older, middle, end, false)), await this.hash(start, middle)]
  }

  /** The hash of a complete subtree, from the level of tiles that holds its nodes. */
  async #subtree(start: number, width: number): Promise<Bytes> {
    let level = 0
    while (TILE_WIDTH ** (level + 1) <= width) level += 1
    const span = TILE_WIDTH ** level
    const nodes = width / span
    const first = start / span
    const tile = await this.#tile(level, Math.floor(first / TILE_WIDTH))
    const at = (first % TILE_WIDTH) * HASH_BYTES
    return fold(tile.slice(at, at + nodes * HASH_BYTES))
  }

  #tile(level: number, index: number): Promise<Bytes> {
    const address = { level, index, width: tileWidth(level, index, this.size) }
    const path = tilePath(address)
    const known = this.#tiles.get(path)
    if (known !== undefined) return known
    const read = this.#read(address).then((bytes) => {
      if (bytes.length === address.width * HASH_BYTES) return bytes
      throw new TransparencyError('truncated_tree', `${path} is not ${address.width} hashes long`)
    })
    this.#tiles.set(path, read)
    return read
  }
}

/** Computes the root over a row of hashes, whose number must be a power of two. */
export function fold(row: Bytes): Bytes {
  let hashes = row
  while (hashes.length > HASH_BYTES) {
    const parents: Bytes[] = []
    for (let at = 0; at < hashes.length; at += 2 * HASH_BYTES) {
      const middle = at + HASH_BYTES
      parents.push(
        hashChildren(hashes.subarray(at, middle), hashes.subarray(middle, middle + HASH_BYTES)),
      )
    }
    hashes = concatBytes(...parents)
  }
  return hashes
}

function isPowerOfTwo(value: number): boolean {
  return largestPowerBelow(value + 1) === value
}

/** The largest power of two below a number above 1. */
function largestPowerBelow(value: number): number {
  let power = 1
  while (power * 2 < value) power *= 2
  return power
}
