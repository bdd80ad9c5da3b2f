import { toHex, utf8, type Bytes } from './bytes.ts'

/** The digest scheme receipts name in `digest_version`: SHA-256 over exact bytes, lowercase hex. */
export const DIGEST_VERSION = 1

/** SHA-256 of bytes, 32 bytes (FIPS 180-4). */
export async function sha256(bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
}

/** SHA-384 of bytes, 48 bytes. */
export async function sha384(bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest('SHA-384', bytes))
}

/** SHA-256 as 64 lowercase hex digits; a string is hashed as its UTF-8 bytes. */
export async function sha256Hex(input: Bytes | string): Promise<string> {
  const bytes = typeof input === 'string' ? utf8(input) : input
  return toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)))
}
