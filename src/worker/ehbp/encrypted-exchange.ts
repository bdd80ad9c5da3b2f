import type { RecipientContext } from 'hpke'
import { copyBytes, fromHex, toHex, utf8, type Bytes } from '../../protocol/bytes.ts'
import { AnswerCipher } from '../../protocol/ehbp-answer.ts'
import {
  ENCAPSULATED_KEY_HEADER,
  RESPONSE_LABEL,
  RESPONSE_NONCE_BYTES,
  RESPONSE_NONCE_HEADER,
  SECRET_BYTES,
} from '../../protocol/ehbp.ts'
import { readBody } from '../http/body.ts'
import { ApiError } from '../http/errors.ts'
import { withBody } from '../http/reply.ts'
import type { DecapsulateRefusal, Link } from '../link/link.ts'
import { openBody, type OpenedBody } from './opened-body.ts'
import { openRecipient } from './recipient.ts'
import { sealedBody } from './sealed-body.ts'

/** A little more than the largest body of any endpoint, for the frames around it. */
const MAX_BODY_BYTES = 27 * 1024 * 1024

const ENC = /^[0-9a-f]{64}$/

/** The dependencies of an encrypted exchange. */
export interface EhbpDeps {
  readonly link: Pick<Link, 'decapsulate'>
  readonly randomBytes: (length: number) => Bytes
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** A request whose body is encrypted to this router's HPKE key (EHBP), and whose answer must be encrypted too. */
export class EncryptedExchange {
  readonly #enc: string
  readonly #deps: EhbpDeps
  /** The secret from which the answer's keys are derived; null where the encryption itself was refused. */
  #secret: Bytes | null | undefined

  /** @param enc what the client sent as encapsulated key */
  constructor(enc: string, deps: EhbpDeps) {
    this.#enc = enc
    this.#deps = deps
  }

  /**
   * The decrypted request. Each encrypted request is accepted once.
   * @param takeMemory called with numbers of bytes before they are held; throws when they are not available
   * @throws ApiError `invalid_encryption`, `key_config_mismatch`, `request_too_large`, `service_unavailable`
   * @throws LinkUnavailable when the daemon cannot be asked
   */
  async open(request: Request, takeMemory: (bytes: number) => void): Promise<Request> {
    const enc = this.#readEnc()
    const { now } = this.#deps
    const encrypted = await readBody(request, {
      maxBytes: MAX_BODY_BYTES,
      tooLarge: () => new ApiError('request_too_large', 'The body is larger than 27 MiB.'),
      now,
      takeMemory,
    })
    takeMemory(encrypted.length)
    const recipients = await this.#recipients(enc)
    const opened = await openBody(encrypted, recipients)
    if (opened.recipient !== undefined) this.#secret = await exportSecret(opened.recipient)
    return plainRequest(request, demandOpen(opened))
  }

  /**
   * The answer, encrypted where there is a key for it. An error about the encryption itself is sent in the clear: the
   * client could not decrypt it.
   */
  async seal(answer: Response): Promise<Response> {
    const secret = await this.#secretForAnswer()
    if (secret === null) return answer
    const nonce = this.#deps.randomBytes(RESPONSE_NONCE_BYTES)
    const cipher = await AnswerCipher.derive(secret, fromHex(this.#enc), nonce)
    const headers = new Headers(answer.headers)
    headers.delete('content-length')
    headers.set(RESPONSE_NONCE_HEADER, toHex(nonce))
    return withBody(answer, sealedBody(answer.body, cipher), headers)
  }

  #readEnc(): Bytes {
    this.#secret = null
    if (!ENC.test(this.#enc)) throw invalid('The encapsulated key must be 64 lowercase hex digits.')
    return fromHex(this.#enc)
  }

  async #recipients(enc: Bytes): Promise<readonly RecipientContext[]> {
    const answer = await this.#deps.link.decapsulate(this.#enc, true)
    if (!answer.ok) throw REFUSALS[answer.reason]()
    return Promise.all(answer.secrets.map((secret) => openRecipient(enc, secret)))
  }

  /**
   * An error before the body was decrypted is encrypted as well, with the secret that the newest key yields for the
   * request.
   */
  async #secretForAnswer(): Promise<Bytes | null> {
    if (this.#secret !== undefined || !ENC.test(this.#enc)) return this.#secret ?? null
    try {
      const answer = await this.#deps.link.decapsulate(this.#enc, false)
      const [newest] = answer.ok ? answer.secrets : []
      if (newest === undefined) return null
      return await exportSecret(await openRecipient(fromHex(this.#enc), newest))
    } catch {
      return null
    }
  }
}

/**
 * The encrypted exchange that a request begins, or undefined where its body is plain.
 * @throws ApiError `invalid_encryption` where the endpoint has no encrypted form
 */
export function encryptedExchange(
  request: Request,
  { audience }: { readonly audience: string },
  deps: EhbpDeps,
): EncryptedExchange | undefined {
  const enc = request.headers.get(ENCAPSULATED_KEY_HEADER)
  if (enc === null || request.method === 'GET' || request.method === 'HEAD') return undefined
  if (audience !== 'keyed') throw invalid('This endpoint takes no encrypted bodies.')
  return new EncryptedExchange(enc, deps)
}

/** One message for every failure of decryption: an attacker must not learn which one it was. */
const invalid = (message = 'The encrypted body cannot be decrypted.') =>
  new ApiError('invalid_encryption', message)

const REFUSALS: Readonly<Record<DecapsulateRefusal, () => ApiError>> = {
  malformed: () => invalid(),
  replayed: () => invalid('This encrypted request was sent before.'),
  used_up: () =>
    new ApiError('service_unavailable', 'The encryption key is being replaced.', { retryAfter: 2 }),
}

function demandOpen(opened: OpenedBody): Bytes {
  if (opened.ok) return opened.plain
  if (opened.fault === 'malformed') throw invalid()
  throw new ApiError('key_config_mismatch', 'The body is not encrypted to the current key.')
}

async function exportSecret(recipient: RecipientContext): Promise<Bytes> {
  return copyBytes(await recipient.Export(utf8(RESPONSE_LABEL), SECRET_BYTES))
}

function plainRequest(request: Request, body: Bytes): Request {
  const headers = new Headers(request.headers)
  headers.delete(ENCAPSULATED_KEY_HEADER)
  headers.delete('transfer-encoding')
  headers.set('content-length', String(body.length))
  const { method, signal } = request
  return new Request(request.url, { method, headers, body, signal })
}
