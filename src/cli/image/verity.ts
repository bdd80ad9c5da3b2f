import { createHash } from 'node:crypto'
import { concatBytes, toHex, utf8, type Bytes } from '../../protocol/bytes.ts'

export const BLOCK_BYTES = 4096

const DIGEST_BYTES = 32
const HASHES_PER_BLOCK = BLOCK_BYTES / DIGEST_BYTES

/** A disk whose blocks can be verified individually. */
export interface VerityDisk {
  /** Data, one superblock, hash tree. */
  readonly bytes: Bytes
  readonly dataBlocks: number
  /** Hex SHA-256 of the tree's top block, which determines everything else. */
  readonly rootHash: string
}

/**
 * Appends a dm-verity hash tree to the data: SHA-256, blocks of 4 KiB, no salt (a salt only prevents precomputed
 * tables, which are useless against a public image). `veritysetup verify` reads it too.
 *
 * Source: Linux, Documentation/admin-guide/device-mapper/verity.rst; cryptsetup's on-disk format, version 1.
 */
export function makeVerityDisk(data: Bytes): VerityDisk {
  const wholeData = toWholeBlocks(data)
  const dataBlocks = wholeData.length / BLOCK_BYTES
  const levels: Bytes[] = []
  let level = hashLevel(wholeData)
  levels.push(level)
  while (level.length > BLOCK_BYTES) {
    level = hashLevel(level)
    levels.push(level)
  }
  const rootHash = toHex(sha256(level))
  // The top level comes first on the disk.
  const bytes = concatBytes(wholeData, description(dataBlocks), ...levels.toReversed())
  return { bytes, dataBlocks, rootHash }
}

/** The digests of all blocks, padded with zeros to whole blocks. */
function hashLevel(blocks: Bytes): Bytes {
  const count = blocks.length / BLOCK_BYTES
  const hashes = new Uint8Array(Math.ceil(count / HASHES_PER_BLOCK) * BLOCK_BYTES)
  for (let i = 0; i < count; i++) {
    hashes.set(sha256(blocks.subarray(i * BLOCK_BYTES, (i + 1) * BLOCK_BYTES)), i * DIGEST_BYTES)
  }
  return hashes
}

/** cryptsetup's superblock. Its UUID is zero, because it must not differ between builds. */
function description(dataBlocks: number): Bytes {
  const block = new Uint8Array(BLOCK_BYTES)
  const view = new DataView(block.buffer)
  block.set(utf8('verity'), 0)
  view.setUint32(8, 1, true) // version of the superblock
  view.setUint32(12, 1, true) // hash type 1: the normal one, not that of Chrome OS
  block.set(utf8('sha256'), 32)
  view.setUint32(64, BLOCK_BYTES, true) // data block size
  view.setUint32(68, BLOCK_BYTES, true) // hash block size
  view.setBigUint64(72, BigInt(dataBlocks), true)
  return block
}

function toWholeBlocks(bytes: Bytes): Bytes {
  const whole = new Uint8Array(Math.ceil(bytes.length / BLOCK_BYTES) * BLOCK_BYTES)
  whole.set(bytes)
  return whole
}

function sha256(bytes: Bytes): Bytes {
  return new Uint8Array(createHash('sha256').update(bytes).digest())
}
