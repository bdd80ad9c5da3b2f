import { z } from 'zod'
import {
  concatBytes,
  fromBase64,
  fromUtf8,
  toBase64,
  toHex,
  utf8,
  type Bytes,
} from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import type { Random } from '../auth/api-key.ts'

/** An answer in the form that repeats receive. */
export interface StoredAnswer {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Bytes
}

const headersSchema = z.record(z.string(), z.string())

const NAME_LABEL = 'cmr/idempotency-name/v1\0'
const SALT = utf8('cmr/idempotency/v1')
const IV_BYTES = 12
const LINE_FEED = 10

/** A kept answer cannot be decrypted with the caller's keys. */
export class UnreadableAnswer extends Error {
  constructor(cause: unknown) {
    super('the kept answer does not open', { cause })
    this.name = 'UnreadableAnswer'
  }
}

/** The secrets that a caller presents with a request that it may repeat. */
export interface CallerSecrets {
  /** The whole key, not its prefix. */
  readonly apiKey: string
  readonly idempotencyKey: string
}

/**
 * Encrypts the answer to the request of one idempotency key. The key is derived (HKDF, RFC 5869) from the caller's whole API
 * key, the idempotency key and the request itself, including its body. The storage has none of them: of the API key it only
 * has the SHA-256, of the request only the fingerprint. API key and idempotency key are headers, which a party that
 * terminates TLS can read even where bodies are encrypted (EHBP); it still cannot decrypt the answer without the body.
 */
export class AnswerSeal {
  /** Identifies the request: a MAC over its parts, 64 hex digits. Without the caller's keys it reveals nothing. */
  readonly fingerprint: string
  readonly #key: CryptoKey
  readonly #random: Random

  private constructor(fingerprint: string, key: CryptoKey, random: Random) {
    this.fingerprint = fingerprint
    this.#key = key
    this.#random = random
  }

  /** Derives the seal for a caller's secrets and a request that consists of `parts`. */
  static async derive(
    { apiKey, idempotencyKey }: CallerSecrets,
    parts: readonly (string | Bytes)[],
    random: Random,
  ): Promise<AnswerSeal> {
    const secret = `${apiKey}\0${idempotencyKey}`
    const digests = (await Promise.all(parts.map((part) => sha256Hex(part)))).join()
    const [fingerprint, key] = await Promise.all([
      macOf(secret, digests),
      answerKey(`${secret}\0${digests}`),
    ])
    return new AnswerSeal(fingerprint, key, random)
  }

  /**
   * Compresses and encrypts an answer, bound to the request that it answers (`boundTo`).
   * @returns base64 of a random IV and the ciphertext
   */
  async seal({ headers, body }: StoredAnswer, boundTo: string): Promise<string> {
    const plain = concatBytes(utf8(`${JSON.stringify(headers)}\n`), body)
    const iv = this.#random(IV_BYTES)
    const sealed = await crypto.subtle.encrypt(
      { name: 'AES-GCM', iv, additionalData: utf8(boundTo) },
      this.#key,
      await throughStream(plain, new CompressionStream('deflate-raw')),
    )
    return toBase64(concatBytes(iv, new Uint8Array(sealed)))
  }

  /**
   * Decrypts an answer.
   * @param takeMemory called with numbers of bytes before they are held; throws when they are not available
   * @throws UnreadableAnswer when it was changed, or belongs to another request or caller
   * @throws unknown the error of `takeMemory`
   */
  async open(
    text: string,
    boundTo: string,
    takeMemory: (bytes: number) => void,
  ): Promise<StoredAnswer> {
    takeMemory(text.length)
    const compressed = await this.#decrypted(text, boundTo)
    const inflate = new DecompressionStream('deflate-raw')
    const whole = await throughStream(compressed, inflate, takeMemory)
    try {
      const end = whole.indexOf(LINE_FEED)
      const headers = headersSchema.parse(JSON.parse(fromUtf8(whole.subarray(0, end))))
      return { headers, body: whole.subarray(end + 1) }
    } catch (error) {
      throw new UnreadableAnswer(error)
    }
  }

  async #decrypted(text: string, boundTo: string): Promise<Bytes> {
    try {
      const bytes = fromBase64(text)
      const plain = await crypto.subtle.decrypt(
        { name: 'AES-GCM', iv: bytes.subarray(0, IV_BYTES), additionalData: utf8(boundTo) },
        this.#key,
        bytes.subarray(IV_BYTES),
      )
      return new Uint8Array(plain)
    } catch (error) {
      throw new UnreadableAnswer(error)
    }
  }
}

async function macOf(secret: string, content: string): Promise<string> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256', length: 256 }
  const base = await secretKey(secret)
  const key = await crypto.subtle.deriveKey(derivation('fingerprint'), base, algorithm, false, [
    'sign',
  ])
  return toHex(new Uint8Array(await crypto.subtle.sign('HMAC', key, utf8(content))))
}

async function answerKey(secret: string): Promise<CryptoKey> {
  const algorithm = { name: 'AES-GCM', length: 256 }
  const base = await secretKey(secret)
  return crypto.subtle.deriveKey(derivation('answer/v2'), base, algorithm, false, [
    'encrypt',
    'decrypt',
  ])
}

function secretKey(secret: string): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', utf8(secret), 'HKDF', false, ['deriveKey'])
}

function derivation(info: string) {
  return { name: 'HKDF', hash: 'SHA-256', salt: SALT, info: utf8(info) }
}

/** The name under which the requests of a customer's idempotency key are stored, 64 hex digits. */
export function nameOf(customerId: string, idempotencyKey: string): Promise<string> {
  return sha256Hex(`${NAME_LABEL}${customerId}\0${idempotencyKey}`)
}

async function throughStream(
  bytes: Bytes,
  stream: CompressionStream | DecompressionStream,
  takeMemory: (bytes: number) => void = () => {},
): Promise<Bytes> {
  const writer = stream.writable.getWriter()
  const [result] = await Promise.all([
    gather(stream.readable, takeMemory),
    writer.write(bytes).then(() => writer.close()),
  ])
  return result
}

async function gather(
  readable: ReadableStream<Uint8Array>,
  takeMemory: (bytes: number) => void,
): Promise<Bytes> {
  const parts: Uint8Array[] = []
  for await (const part of readable) {
    takeMemory(part.length)
    parts.push(part)
  }
  return concatBytes(...parts)
}
