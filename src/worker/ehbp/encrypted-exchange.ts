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
import type { Context } from '../context.ts'
import { readBody } from '../http/body.ts'
import { ApiError } from '../http/errors.ts'
import { withBody } from '../http/reply.ts'
import { sourceOf } from '../http/source.ts'
import { costOfBytes } from '../limits/fair-turns.ts'
import type { Refusals } from '../limits/refusals.ts'
import type { BudgetLimits, SourceBudget } from '../http/source-budget.ts'
import type { DecapsulateRefusal, Link } from '../link/link.ts'
import { openBody, type OpenedBody } from './opened-body.ts'
import { openRecipient } from './recipient.ts'
import { sealedBody } from './sealed-body.ts'

/** Maximum size of an encrypted body, bytes: the largest body of any endpoint, plus room for its frames. */
const MAX_BODY_BYTES = 27 * 1024 * 1024

const ENC = /^[0-9a-f]{64}$/

/** How long a customer that has reached its share of the key's uses is refused without a call to the daemon, ms. */
const SHARE_REFUSED_MS = 2_000

/**
 * How many errors are encrypted for requests that were refused before their body was decrypted, such as those without a
 * valid key; each costs a call to the daemon. Further errors are sent unencrypted.
 */
export const ENCRYPTED_REFUSALS: BudgetLimits = { perSource: 20, total: 200, windowMs: 10_000 }

/** The dependencies of an encrypted exchange. */
export interface EhbpDeps {
  readonly link: Pick<Link, 'decapsulate'>
  /** The budget of `ENCRYPTED_REFUSALS`. */
  readonly refusalBudget: SourceBudget
  /** Customers that have reached their share of the key's uses. */
  readonly shareRefusals: Refusals
  readonly randomBytes: (length: number) => Bytes
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** What decrypting a request needs from the context. */
export type OpeningDeps = Pick<Context, 'owner' | 'takeMemory' | 'inTurn'>

/** A request whose body is encrypted to this router's HPKE key (EHBP), and whose answer must be encrypted too. */
export class EncryptedExchange {
  readonly #enc: string
  readonly #source: string
  readonly #deps: EhbpDeps
  /** The secret from which the answer's keys are derived; null where the encryption itself was refused. */
  #secret: Bytes | null | undefined

  /**
   * @param enc the encapsulated key as the client sent it
   * @param source the network source of the request
   */
  constructor(enc: string, source: string, deps: EhbpDeps) {
    this.#enc = enc
    this.#source = source
    this.#deps = deps
  }

  /**
   * Decrypts the request. Each encrypted request is accepted once.
   * @throws ApiError `invalid_encryption`, `key_config_mismatch`, `request_too_large`, `service_unavailable`,
   *   `rate_limit_exceeded`
   * @throws LinkUnavailable when the daemon does not answer
   */
  async open(request: Request, { owner, takeMemory, inTurn }: OpeningDeps): Promise<Request> {
    const enc = this.#readEnc()
    const { now } = this.#deps
    this.#deps.shareRefusals.check(owner)
    const encrypted = await readBody(request, {
      maxBytes: MAX_BODY_BYTES,
      tooLarge: () => new ApiError('request_too_large', 'The body is larger than 27 MiB.'),
      now,
      takeMemory,
    })
    takeMemory(encrypted.length)
    return inTurn(costOfBytes(encrypted.length), async () => {
      const opened = await openBody(encrypted, await this.#recipients(enc, owner))
      if (opened.recipient !== undefined) this.#secret = await exportSecret(opened.recipient)
      return plainRequest(request, demandOpen(opened))
    })
  }

  /**
   * Encrypts the answer where there is a key for it. An error about the encryption itself is sent unencrypted, because the
   * client could not decrypt it; so are errors beyond the budget for clients that may have no API key.
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

  async #recipients(enc: Bytes, owner: string): Promise<readonly RecipientContext[]> {
    const { link, shareRefusals } = this.#deps
    const answer = await link.decapsulate(this.#enc, owner)
    if (!answer.ok) {
      const refusal = REFUSALS[answer.reason]
      if (answer.reason === 'share') shareRefusals.remember(owner, SHARE_REFUSED_MS, refusal)
      throw refusal()
    }
    return Promise.all(answer.secrets.map((secret) => openRecipient(enc, secret)))
  }

  /** The secret for the answer. If the request failed before its body was decrypted, it is derived with the newest key. */
  async #secretForAnswer(): Promise<Bytes | null> {
    if (this.#secret !== undefined || !ENC.test(this.#enc)) return this.#secret ?? null
    const { link, refusalBudget } = this.#deps
    if (!refusalBudget.spend(this.#source)) return null
    try {
      const answer = await link.decapsulate(this.#enc, null)
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
  return new EncryptedExchange(enc, sourceOf(request), deps)
}

/** The same message for every failure of decryption: an attacker must not learn which one it was. */
const invalid = (message = 'The encrypted body cannot be decrypted.') =>
  new ApiError('invalid_encryption', message)

const REFUSALS: Readonly<Record<DecapsulateRefusal, () => ApiError>> = {
  malformed: () => invalid(),
  replayed: () => invalid('This encrypted request was sent before.'),
  share: () =>
    new ApiError(
      'rate_limit_exceeded',
      'You have sent as many encrypted requests as one customer may until the encryption key is replaced.',
      { retryAfter: 5 },
    ),
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
