import { concatBytes, copyBytes, utf8, type Bytes } from './bytes.ts'

/** Maximum number of frames in one answer: the counter has 32 bits, enough for about 2 PiB of events. */
const MAX_FRAMES = 0x1_0000_0000

const KEY_BITS = 256
const NONCE_BITS = 96

/**
 * Encrypts or decrypts the frames of one answer, in order (EHBP 0.3.1 section 4.4, after RFC 9458 section 4.4): AES-256-GCM
 * without associated data, key and first nonce from the secret that both ends export from the request's HPKE context.
 */
export class AnswerCipher {
  readonly #key: CryptoKey
  readonly #firstNonce: Bytes
  #frames = 0

  private constructor(key: CryptoKey, firstNonce: Bytes) {
    this.#key = key
    this.#firstNonce = firstNonce
  }

  /**
   * @param secret exported from the request's context, 32 bytes
   * @param enc the request's encapsulated key, 32 bytes
   * @param responseNonce 32 bytes that the server chose
   */
  static async derive(secret: Bytes, enc: Bytes, responseNonce: Bytes): Promise<AnswerCipher> {
    const { key, nonce } = await deriveAnswerKeys(secret, enc, responseNonce)
    const usages = ['encrypt', 'decrypt'] as const
    const aesKey = await crypto.subtle.importKey('raw', key, 'AES-GCM', false, [...usages])
    return new AnswerCipher(aesKey, nonce)
  }

  /** Encrypts the next frame. */
  async seal(plaintext: Bytes): Promise<Bytes> {
    return new Uint8Array(await crypto.subtle.encrypt(this.#nextNonce(), this.#key, plaintext))
  }

  /**
   * Decrypts the next frame.
   * @throws DOMException `OperationError` when the frame is not the one that was sealed at this position
   */
  async open(ciphertext: Uint8Array): Promise<Bytes> {
    const sealed = copyBytes(ciphertext)
    return new Uint8Array(await crypto.subtle.decrypt(this.#nextNonce(), this.#key, sealed))
  }

  #nextNonce(): { readonly name: 'AES-GCM'; readonly iv: Bytes } {
    if (this.#frames >= MAX_FRAMES) throw new Error('internal error: an answer of too many frames')
    const iv = copyBytes(this.#firstNonce)
    const last = new DataView(iv.buffer, iv.length - 4)
    last.setUint32(0, (last.getUint32(0) ^ this.#frames) >>> 0)
    this.#frames += 1
    return { name: 'AES-GCM', iv }
  }
}

/**
 * Derives the key (32 bytes) and the first nonce (12 bytes) of an answer: HKDF-SHA256 (RFC 5869) with `enc || nonce` as
 * its salt.
 */
export async function deriveAnswerKeys(
  secret: Bytes,
  enc: Bytes,
  responseNonce: Bytes,
): Promise<{ readonly key: Bytes; readonly nonce: Bytes }> {
  const salt = concatBytes(enc, responseNonce)
  const material = await crypto.subtle.importKey('raw', secret, 'HKDF', false, ['deriveBits'])
  const expand = async (label: string, bits: number) => {
    const hkdf = { name: 'HKDF', hash: 'SHA-256', salt, info: utf8(label) }
    return new Uint8Array(await crypto.subtle.deriveBits(hkdf, material, bits))
  }
  const [key, nonce] = await Promise.all([expand('key', KEY_BITS), expand('nonce', NONCE_BITS)])
  return { key, nonce }
}
