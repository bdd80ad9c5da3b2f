/**
 * Bytes and their text forms. Decoders are strict: one spelling for each value, because two spellings of one digest or
 * signature could evade a comparison.
 */

/** Bytes with an ArrayBuffer of their own, which WebCrypto accepts without a cast. */
export type Bytes = Uint8Array<ArrayBuffer>

const encoder = new TextEncoder()
const strictDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** UTF-8 bytes of a string; unpaired surrogates become U+FFFD, as in the Encoding Standard. */
export function utf8(text: string): Bytes {
  // oxlint-disable-next-line typescript/no-unnecessary-type-assertion -- wider in the Workers types
  return encoder.encode(text) as Bytes
}

/**
 * Decodes UTF-8 bytes.
 * @throws TypeError when the bytes are not UTF-8
 */
export function fromUtf8(bytes: Uint8Array): string {
  return strictDecoder.decode(bytes)
}

/** Copies bytes into an ArrayBuffer of their own. */
export function copyBytes(bytes: Uint8Array): Bytes {
  return new Uint8Array(bytes)
}

/** Joins the parts in order. */
export function concatBytes(...parts: readonly Uint8Array[]): Bytes {
  const joined = new Uint8Array(parts.reduce((total, part) => total + part.length, 0))
  let offset = 0
  for (const part of parts) {
    joined.set(part, offset)
    offset += part.length
  }
  return joined
}

/** Compares in time that depends only on the lengths. */
export function equalBytes(left: Uint8Array, right: Uint8Array): boolean {
  if (left.length !== right.length) return false
  let difference = 0
  for (let i = 0; i < left.length; i++) difference |= (left[i] ?? 0) ^ (right[i] ?? 0)
  return difference === 0
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/**
 * Encodes as lowercase hex, with the platform's own method where there is one: a concatenated string takes ten times
 * the memory.
 */
export function toHex(bytes: Uint8Array & { readonly toHex?: () => string }): string {
  if (bytes.toHex !== undefined) return bytes.toHex()
  let text = ''
  for (const byte of bytes) text += HEX[byte]
  return text
}

/**
 * Bytes of lowercase hex.
 * @throws TypeError when the length is odd or a character is not a lowercase hex digit
 */
export function fromHex(text: string): Bytes {
  if (text.length % 2 !== 0 || !/^[0-9a-f]*$/.test(text)) throw new TypeError('not lowercase hex')
  const bytes = new Uint8Array(text.length / 2)
  for (let i = 0; i < bytes.length; i++)
    bytes[i] = Number.parseInt(text.slice(2 * i, 2 * i + 2), 16)
  return bytes
}

const BINARY_CHUNK = 0x8000

/** Standard padded base64 (RFC 4648 section 4). */
export function toBase64(bytes: Uint8Array): string {
  let binary = ''
  for (let i = 0; i < bytes.length; i += BINARY_CHUNK) {
    // Spreading the bytes instead costs ten times as much.
    const chunk: string = Reflect.apply(
      String.fromCharCode,
      undefined,
      bytes.subarray(i, i + BINARY_CHUNK),
    )
    binary += chunk
  }
  return btoa(binary)
}

/**
 * Bytes of standard padded base64.
 * @throws TypeError when the text is not the canonical encoding of its bytes
 */
export function fromBase64(text: string): Bytes {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0) {
    throw new TypeError('not standard base64')
  }
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0))
  if (toBase64(bytes.subarray(bytes.length - (bytes.length % 3 || 3))) !== text.slice(-4)) {
    throw new TypeError('not canonical base64')
  }
  return bytes
}

/** Base64url without padding (RFC 7515 section 2). */
export function toBase64Url(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

/**
 * Bytes of unpadded base64url.
 * @throws TypeError when the text is not the canonical encoding of its bytes
 */
export function fromBase64Url(text: string): Bytes {
  if (!/^[A-Za-z0-9_-]*$/.test(text) || text.length % 4 === 1) throw new TypeError('not base64url')
  const standard = text.replaceAll('-', '+').replaceAll('_', '/')
  return fromBase64(standard.padEnd(Math.ceil(text.length / 4) * 4, '='))
}

/** Whether the text is the canonical, unpadded base64url of 32 bytes. */
export function isBase64Url32(text: string): boolean {
  try {
    return fromBase64Url(text).length === 32
  } catch {
    return false
  }
}
