import type { Bytes } from '../../protocol/bytes.ts'
import { authenticate, readApiKeyText } from '../auth/authenticate.ts'
import type { PresentedKey } from '../auth/api-key.ts'
import type { Context } from '../context.ts'
import { ApiError } from '../http/errors.ts'
import { replayed } from '../http/reply.ts'
import { costOfBytes } from '../limits/fair-turns.ts'
import { CLAIM_HELD_MS, findEarlier, InProgress, renewClaim } from '../settle/claims.ts'
import type { Claim } from '../storage/ledger-operations.ts'
import { AnswerRecorder, MAX_RECORDED_BYTES } from './answer-recorder.ts'
import { AnswerSeal, nameOf, UnreadableAnswer, type StoredAnswer } from './answer-seal.ts'
import { readIdempotencyKey } from './key-header.ts'

/** Maximum length of an encrypted answer, characters: engines accept values of at most two million bytes. */
const MAX_SEALED_CHARACTERS = 1_500_000

const MINUTE_MS = 60_000
const MIB = 1024 * 1024

/** Headers that differ with each request and are not part of the kept answer. */
const OF_THE_MOMENT = /^x-ratelimit-/

/** This header does not affect the answer, so it may differ in a repeat. */
const NOT_FINGERPRINTED = 'x-service-timeout-seconds'

/**
 * A request that is served once, however often it is sent with its `Idempotency-Key`: its claim, and the seal of its
 * kept answer.
 */
export class IdempotentRequest {
  readonly claim: Claim
  readonly #seal: AnswerSeal
  readonly #context: Context
  readonly #customerId: string
  #stopRenewing: () => void = () => {}

  constructor(claim: Claim, seal: AnswerSeal, context: Context, customerId: string) {
    this.claim = claim
    this.#seal = seal
    this.#context = context
    this.#customerId = customerId
  }

  /**
   * The answer of an earlier request with the same key, if there was one.
   * @param moreCost called with the cost of decrypting a kept answer, and with that of its content, in the unit of turns
   * @throws ApiError `idempotency_key_reused`, `idempotency_in_progress` or `answer_not_kept`; those of `authenticate` and
   *   of `takeMemory`
   * @throws StorageUnavailable when the storage does not answer
   */
  async earlierAnswer(
    request: Request,
    moreCost: (cost: number) => void,
  ): Promise<Response | undefined> {
    const { storage, now, log, requestId, takeMemory } = this.#context
    const ledger = storage.customer(this.#customerId)
    const earlier = await findEarlier(ledger, this.claim, this.#customerId, now())
    if (earlier === undefined) return undefined
    await authenticate(request, this.#context)
    if (earlier.fingerprint !== this.claim.fingerprint) throw reused()
    if (!earlier.done) throw new InProgress()
    if (earlier.answer === null) throw notKept(earlier.receiptId)
    try {
      // Counted before decrypting, so that only a few large answers are decrypted at the same time.
      moreCost(costOfBytes(earlier.answer.length))
      const { body, headers } = await this.#seal.open(
        earlier.answer,
        this.#bound(earlier.requestId),
        takeMemory,
      )
      moreCost(costOfBytes(body.length))
      log('answer_replayed', { request_id: requestId })
      return replayed(body, headers)
    } catch (error) {
      if (!(error instanceof UnreadableAnswer)) throw error
      log('kept_answer_unreadable', { request_id: requestId })
      throw notKept(earlier.receiptId)
    }
  }

  /** Renews the claim of the admitted request until `seal`, or until the claim is lost. */
  hold(): void {
    const timer = setInterval(() => void this.#renew(), CLAIM_HELD_MS / 3)
    this.#stopRenewing = () => clearInterval(timer)
  }

  recorder(): AnswerRecorder {
    return new AnswerRecorder(this.#context.takeMemory)
  }

  /**
   * The answer in its kept form; null where it is too large or there is no room for it. Never rejects, because the request
   * must be billed in any case.
   */
  async seal(answer: WholeAnswer): Promise<string | null> {
    this.#stopRenewing()
    return this.#sealed(answer).catch(() => null)
  }

  async #sealed({ headers, body }: WholeAnswer): Promise<string | null> {
    if (body === undefined || body.length > MAX_RECORDED_BYTES) return null
    const { keptAnswers, storage, config, requestId } = this.#context
    const kept = [...headers].filter(([name]) => !OF_THE_MOMENT.test(name))
    const answer: StoredAnswer = { headers: Object.fromEntries(kept), body }
    const text = await this.#seal.seal(answer, this.#bound(requestId))
    if (text.length > MAX_SEALED_CHARACTERS) return null
    const max = config.service.idempotency.total_mib * MIB
    return (await keptAnswers.hasRoom(storage.directory(), max)) ? text : null
  }

  #bound(requestId: string): string {
    return [this.#customerId, this.claim.name, requestId, this.claim.fingerprint].join(' ')
  }

  async #renew(): Promise<void> {
    const { storage, requestId, now } = this.#context
    const owner = { requestId, customerId: this.#customerId }
    const ledger = storage.customer(this.#customerId)
    // If the storage does not answer, the next round tries again; the claim outlasts two failed renewals.
    const held = await renewClaim(ledger, this.claim, owner, now()).catch(() => true)
    if (!held) this.#stopRenewing()
  }
}

/** An answer before it is kept. */
interface WholeAnswer {
  readonly headers: Headers
  /** Undefined where it was not recorded completely. */
  readonly body: Bytes | undefined
}

/**
 * Reads the `Idempotency-Key` of a request, where it has one.
 * @param content the part of the request that identifies it
 * @throws ApiError `invalid_parameter` when it is malformed
 */
export async function readIdempotentRequest(
  request: Request,
  context: Context,
  { customerId }: PresentedKey,
  content: readonly (string | Bytes)[],
): Promise<IdempotentRequest | undefined> {
  const idempotencyKey = readIdempotencyKey(request.headers)
  if (idempotencyKey === undefined) return undefined
  const { idempotency } = context.config.service
  const apiKey = readApiKeyText(request)
  const parts = [...headOf(request), ...content]
  const seal = await AnswerSeal.derive({ apiKey, idempotencyKey }, parts, context.randomBytes)
  const claim: Claim = {
    name: await nameOf(customerId, idempotencyKey),
    fingerprint: seal.fingerprint,
    lifetimeMs: idempotency.lifetime_minutes * MINUTE_MS,
    customerBytes: idempotency.customer_mib * MIB,
  }
  return new IdempotentRequest(claim, seal, context, customerId)
}

/** Method, path, and the headers that affect the answer. */
function headOf({ method, url, headers }: Request): readonly string[] {
  const deciding = [...headers].filter(
    ([name]) => name.startsWith('x-service-') && name !== NOT_FINGERPRINTED,
  )
  return [method, new URL(url).pathname, JSON.stringify(deciding)]
}

function reused(): ApiError {
  const message =
    'This Idempotency-Key was used before, for another request or with another API key. Each request needs its own.'
  return new ApiError('idempotency_key_reused', message, { param: 'Idempotency-Key' })
}

function notKept(receiptId: string | null): ApiError {
  const receipt = receiptId === null ? 'It has no receipt.' : `Its receipt is ${receiptId}.`
  const message = `The request with this Idempotency-Key was carried out and billed, but its answer is not kept. ${receipt}`
  return new ApiError('answer_not_kept', message, { param: 'Idempotency-Key' })
}
