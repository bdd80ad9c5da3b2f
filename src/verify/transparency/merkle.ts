import { sha256 } from '@noble/hashes/sha2.js'
import { equalBytes, type Bytes } from '../../protocol/bytes.ts'
import { TransparencyError } from './transparency-error.ts'

/**
 * Merkle trees of a transparency log (RFC 6962 section 2.1) and the checks of their proofs (RFC 9162 sections 2.1.3.2
 * and 2.1.4.2). Hashes are 32 bytes; sizes and indices are safe integers.
 */

export const HASH_BYTES = 32

const LEAF = Uint8Array.of(0)
const NODE = Uint8Array.of(1)

/** The root of a tree without leaves. */
export function emptyRoot(): Bytes {
  return owned(sha256(new Uint8Array()))
}

/** The hash of an entry's bytes as a leaf. */
export function hashLeaf(entry: Uint8Array): Bytes {
  return owned(sha256.create().update(LEAF).update(entry).digest())
}

/** The hash of an inner node. */
export function hashChildren(left: Uint8Array, right: Uint8Array): Bytes {
  return owned(sha256.create().update(NODE).update(left).update(right).digest())
}

/**
 * Computes the root from an inclusion proof.
 * @param proof from the leaf's sibling up to the child of the root
 * @throws TransparencyError `not_included` when index, size and length of the proof do not match
 */
export function rootFromInclusion(
  leaf: Bytes,
  index: number,
  size: number,
  proof: readonly Bytes[],
): Bytes {
  if (index < 0 || index >= size) throw notIncluded()
  let node = index
  let last = size - 1
  let hash = leaf
  for (const sibling of proof) {
    if (last === 0) throw notIncluded()
    if (node % 2 === 1 || node === last) {
      hash = hashChildren(sibling, hash)
      while (node % 2 === 0 && node !== 0) {
        node /= 2
        last = half(last)
      }
    } else {
      hash = hashChildren(hash, sibling)
    }
    node = half(node)
    last = half(last)
  }
  if (last !== 0) throw notIncluded()
  return hash
}

/** A tree's head. */
export interface TreeHead {
  readonly size: number
  readonly root: Bytes
}

/**
 * Checks that the newer tree has every entry of the older one, unchanged and at the same index.
 * @throws TransparencyError when the new tree is smaller (`truncated_tree`), when two trees of one size differ
 *   (`equivocation`), or when the proof does not lead from one to the other (`inconsistent_tree`)
 */
export function checkConsistency(older: TreeHead, newer: TreeHead, proof: readonly Bytes[]): void {
  if (newer.size < older.size) {
    throw new TransparencyError(
      'truncated_tree',
      `the tree shrank from ${older.size} entries to ${newer.size}`,
    )
  }
  if (older.size === newer.size) {
    if (proof.length > 0) throw inconsistent()
    if (equalBytes(older.root, newer.root)) return
    throw new TransparencyError(
      'equivocation',
      `the log has shown two trees of ${older.size} entries`,
    )
  }
  if (older.size === 0) {
    if (proof.length > 0 || !equalBytes(older.root, emptyRoot())) throw inconsistent()
    return
  }
  const roots = rootsFromConsistency(older, newer.size, proof)
  if (!equalBytes(roots.older, older.root) || !equalBytes(roots.newer, newer.root))
    throw inconsistent()
}

function rootsFromConsistency(
  older: TreeHead,
  newSize: number,
  proof: readonly Bytes[],
): { older: Bytes; newer: Bytes } {
  // If the older tree's size is a power of two, its root is the first node of the path.
  const path = isPowerOfTwo(older.size) ? [older.root, ...proof] : [...proof]
  const [seed, ...siblings] = path
  if (seed === undefined) throw inconsistent()
  let node = older.size - 1
  let last = newSize - 1
  while (node % 2 === 1) {
    node = half(node)
    last = half(last)
  }
  let olderHash = seed
  let newerHash = seed
  for (const sibling of siblings) {
    if (last === 0) throw inconsistent()
    if (node % 2 === 1 || node === last) {
      olderHash = hashChildren(sibling, olderHash)
      newerHash = hashChildren(sibling, newerHash)
      while (node % 2 === 0 && node !== 0) {
        node /= 2
        last = half(last)
      }
    } else {
      newerHash = hashChildren(newerHash, sibling)
    }
    node = half(node)
    last = half(last)
  }
  if (last !== 0) throw inconsistent()
  return { older: olderHash, newer: newerHash }
}

function half(value: number): number {
  return Math.floor(value / 2)
}

function isPowerOfTwo(value: number): boolean {
  let rest = value
  while (rest > 1 && rest % 2 === 0) rest /= 2
  return rest === 1
}

function notIncluded(): TransparencyError {
  return new TransparencyError(
    'not_included',
    'the proof does not lead from this entry to the root of the log',
  )
}

function inconsistent(): TransparencyError {
  return new TransparencyError(
    'inconsistent_tree',
    'the newer tree does not contain the older one: the log has rewritten its history',
  )
}

/** Copies, because the hash library's type does not exclude shared buffers. */
function owned(bytes: Uint8Array): Bytes {
  return new Uint8Array(bytes)
}
