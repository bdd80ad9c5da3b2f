import { sha256 } from '@noble/hashes/sha2.js'
import { toHex } from '../protocol/bytes.ts'
import type { AnswerDigest } from './answer-digest.ts'
import { requestedConstraints } from './requested-constraints.ts'
import type { ReceiptVerifier } from './receipts.ts'
import type { ReceiptOutcome } from './receipt-outcome.ts'
import type { AnswerBody, OutgoingRequest } from './transport.ts'

/** The headers that identify a customer. */
const CREDENTIALS = ['authorization', 'x-api-key'] as const

/** One request and its answer. Their digests are known once the answer has been passed on. */
export class ObservedExchange {
  readonly #request: OutgoingRequest
  readonly #digest: AnswerDigest
  readonly #verifier: Pick<ReceiptVerifier, 'verify'>
  #settle: (known: boolean) => void = () => {}
  #settled = false
  #outcome: Promise<ReceiptOutcome> | undefined
  /** Resolves when digest and receipt id are known; with false where the answer was cut off before that. */
  readonly known: Promise<boolean>

  constructor(
    request: OutgoingRequest,
    digest: AnswerDigest,
    verifier: Pick<ReceiptVerifier, 'verify'>,
  ) {
    this.#request = request
    this.#digest = digest
    this.#verifier = verifier
    this.known = new Promise((resolve) => (this.#settle = resolve))
  }

  /** The result of verifying the receipt. Verification runs once, after the end of the answer. */
  outcome(): Promise<ReceiptOutcome> {
    this.#outcome ??= this.#verify()
    return this.#outcome
  }

  #verify(): Promise<ReceiptOutcome> {
    const { sha256: responseSha256, receiptId } = this.#digest.finish()
    const { body, headers, url } = this.#request
    const credentials = CREDENTIALS.flatMap((name) => {
      const value = headers.get(name)
      return value === null ? [] : [[name, value] as const]
    })
    return this.#verifier.verify({
      path: url.pathname,
      receiptId,
      requestSha256: toHex(sha256(body ?? new Uint8Array())),
      responseSha256,
      constraints: () => requestedConstraints(this.#request),
      credentials: Object.fromEntries(credentials),
    })
  }

  /** Passes the bytes on unchanged and without delay. */
  tap(body: AnswerBody, { known, ended }: Moments): ReadableStream<Uint8Array> {
    const reader = body.getReader()
    const settle = () => {
      if (this.#settled) return
      this.#settled = true
      this.#settle(true)
      known()
    }
    return new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        try {
          const { done, value } = await reader.read()
          if (!done && value !== undefined) {
            this.#digest.update(value)
            if (this.#digest.complete) settle()
            controller.enqueue(value)
            return
          }
          settle()
          await ended()
          controller.close()
        } catch (error) {
          this.#settle(false)
          controller.error(error)
        }
      },
      cancel: async (reason) => {
        this.#settle(false)
        await reader.cancel(reason)
      },
    })
  }
}

/** Callbacks for the progress of an answer. */
interface Moments {
  /** Called once, as soon as digest and receipt id are known: for a stream, before its last event is passed on. */
  readonly known: () => void
  /** Called after the last byte and before the end is passed on; if it rejects, the answer ends with that error. */
  readonly ended: () => Promise<void>
}
