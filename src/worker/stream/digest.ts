import { sha256 } from '@noble/hashes/sha2.js'
import { toHex } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'

/** SHA-256 over bytes that come in pieces (FIPS 180-4). */
export interface Digest {
  /** Takes the next bytes and keeps no reference to them. */
  update(bytes: Uint8Array): void
  /** 64 lowercase hex digits over all bytes. To be called once, as the last method. */
  finish(): Promise<string>
}

/**
 * Bytes that are collected for one write. A write to workerd's hash stream costs 3 us, however small, so about twenty frames
 * share one. The buffer is not larger, because every open stream has two of them.
 */
const BUFFER_BYTES = 4 * 1024

/** The part of `crypto.DigestStream` that is used here: workerd's extension of the Web standard. */
interface HashStream {
  readonly digest: Promise<ArrayBuffer>
  getWriter(): { write(bytes: Uint8Array): Promise<void>; close(): Promise<void> }
}

type HashStreamMaker = new (algorithm: 'SHA-256') => HashStream

/** An incremental SHA-256: native in workerd, in JavaScript elsewhere. */
export function createDigest(): Digest {
  const DigestStream: unknown = Reflect.get(crypto, 'DigestStream')
  return isHashStream(DigestStream) ? nativeDigest(DigestStream) : portableDigest()
}

function isHashStream(value: unknown): value is HashStreamMaker {
  return typeof value === 'function'
}

function portableDigest(): Digest {
  const hash = sha256.create()
  return {
    update: (bytes) => void hash.update(bytes),
    finish: () => Promise.resolve(toHex(hash.digest())),
  }
}

/** Input that fits into the first buffer is hashed in one call at the end; only longer input needs a hash stream. */
function nativeDigest(DigestStream: HashStreamMaker): Digest {
  let hash: OpenHash | undefined
  let buffer = new Uint8Array(BUFFER_BYTES)
  let length = 0
  const flush = () => {
    hash ??= openHash(DigestStream)
    // Writing to a hash cannot fail; if it did, `digest` would reject, and `finish` with it.
    void hash.writer.write(buffer.subarray(0, length)).catch(() => undefined)
    buffer = new Uint8Array(BUFFER_BYTES)
    length = 0
  }
  return {
    update: (bytes) => {
      for (let start = 0; start < bytes.length;) {
        if (length === BUFFER_BYTES) flush()
        const part = bytes.subarray(start, start + BUFFER_BYTES - length)
        buffer.set(part, length)
        length += part.length
        start += part.length
      }
    },
    finish: async () => {
      if (hash === undefined) return sha256Hex(buffer.subarray(0, length))
      if (length > 0) flush()
      await hash.writer.close()
      return toHex(new Uint8Array(await hash.digest))
    },
  }
}

interface OpenHash {
  readonly digest: Promise<ArrayBuffer>
  readonly writer: ReturnType<HashStream['getWriter']>
}

function openHash(DigestStream: HashStreamMaker): OpenHash {
  const stream = new DigestStream('SHA-256')
  return { digest: stream.digest, writer: stream.getWriter() }
}
