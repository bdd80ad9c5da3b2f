import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'

/** The head of a data disk belongs to this program; the kernel's part begins after it. */
export const HEAD_BYTES = 1024 * 1024

/** Why a disk is not opened, decided by its head. */
export type HeadFault = 'not_ours' | 'damaged' | 'other_key'

export interface DataDiskKeys {
  /** The sector keys, AES-256-XTS and HMAC-SHA-256: 96 bytes in hex, in the kernel's form. */
  readonly sectors: string
  /** The HMAC key of the head, which detects a wrong secret before anything is decrypted. */
  readonly head: Buffer
}

/*
 * "CMRDISK1", 32 bytes of salt, HMAC-SHA-256 over both, SHA-256 over all of that, zeros. The checksum needs no key, so
 * damage can be told from another key.
 */
const MAGIC = Buffer.from('CMRDISK1')
const SALT_BYTES = 32
const MAC_AT = MAGIC.length + SALT_BYTES
const CHECKSUM_AT = MAC_AT + 32
const END = CHECKSUM_AT + 32

const SECTOR_KEY_BYTES = 96
const INFO = 'confidential-model-router data disk v1'

/** Derives the keys with HKDF-SHA-256 (RFC 5869). */
export function deriveKeys(secret: Uint8Array, salt: Uint8Array): DataDiskKeys {
  const bytes = Buffer.from(hkdfSync('sha256', secret, salt, INFO, SECTOR_KEY_BYTES + 32))
  return {
    sectors: bytes.toString('hex', 0, SECTOR_KEY_BYTES),
    head: bytes.subarray(SECTOR_KEY_BYTES),
  }
}

/** Builds the head of a new disk, whose keys were derived with this salt. */
export function writeHead(salt: Uint8Array, keys: DataDiskKeys): Buffer {
  const head = Buffer.alloc(HEAD_BYTES)
  MAGIC.copy(head)
  head.set(salt, MAGIC.length)
  macOf(head, keys).copy(head, MAC_AT)
  checksumOf(head).copy(head, CHECKSUM_AT)
  return head
}

export function isBlank(head: Buffer): boolean {
  return head.equals(Buffer.alloc(head.length))
}

/** Reads the head: the keys of a disk that was made with this secret, or why it cannot be opened. */
export function readHead(head: Buffer, secret: Uint8Array): DataDiskKeys | HeadFault {
  if (!head.subarray(0, MAGIC.length).equals(MAGIC)) return 'not_ours'
  const whole = head.length === HEAD_BYTES && isBlank(head.subarray(END))
  if (!whole || !checksumOf(head).equals(head.subarray(CHECKSUM_AT, END))) return 'damaged'
  const keys = deriveKeys(secret, head.subarray(MAGIC.length, MAC_AT))
  return timingSafeEqual(macOf(head, keys), head.subarray(MAC_AT, CHECKSUM_AT)) ? keys : 'other_key'
}

function macOf(head: Buffer, keys: DataDiskKeys): Buffer {
  return createHmac('sha256', keys.head).update(head.subarray(0, MAC_AT)).digest()
}

function checksumOf(head: Buffer): Buffer {
  return createHash('sha256').update(head.subarray(0, CHECKSUM_AT)).digest()
}
