import type { Bytes } from '../../protocol/bytes.ts'
import type {
  LinkConfig,
  LinkState,
  ReceiptHead,
  SignRequest,
  SignResponse,
} from '../../protocol/link.ts'
import type { ProviderProof } from '../../protocol/provider-proof.ts'
import type { StreamRecord } from '../../protocol/stream-record.ts'
import type { UnsealAnswer } from '../../protocol/unseal.ts'
import type { WholeAnswerRecord } from '../../protocol/whole-answer.ts'
import type { LinkAnswer } from './link-answer.ts'
import type { LinkInit } from './link-calls.ts'

/** The answer to a call that the daemon carried. */
export interface CarriedAnswer {
  readonly response: LinkAnswer
  /** The daemon's record, where it has written the client's whole answer; the body is then what the client receives. */
  readonly whole: WholeAnswerRecord | undefined
}

/**
 * The worker's side of the link to the enclave daemon. Every call has its own timeout; where nothing else is said, it throws
 * LinkUnavailable when the daemon does not answer.
 */
export interface Link {
  /** The daemon's state, at most a quarter of a second old. */
  state(): Promise<LinkState>
  /** The daemon's state as of this time (ms since the epoch) or later, which proves that it was alive then. */
  stateReadAfter(time: number): Promise<LinkState>
  /** Fetches the daemon's state now. */
  freshState(): Promise<LinkState>
  /** Starts watching the daemon thread that carries this worker's calls. */
  watchThread(): ThreadWatch
  config(): Promise<LinkConfig>
  /**
   * Signs the record of one finished exchange.
   * @throws LinkUnavailable when it cannot be signed
   */
  sign(exchange: UnsignedReceipt): Promise<SignedReceipt>
  /** Prepares for a receipt that the daemon signs together with a provider's answer. */
  includedReceipt(provider: string): IncludedReceipt
  /** The envelope's exact JSON text; with a nonce a fresh one. */
  attestation(fresh?: FreshAttestation): Promise<AttestationAnswer>
  /** The trust bundle document's exact JSON text. */
  trustBundle(): Promise<string>
  /** The HPKE key configuration to which request bodies may be encrypted. */
  hpkeKeyConfig(): Promise<Bytes>
  /**
   * The shared secrets of an encapsulated key (64 lowercase hex digits), one for each HPKE key in use.
   * @param owner the customer whose request it is; null where only an error is to be encrypted
   */
  decapsulate(enc: string, owner: string | null): Promise<DecapsulatedKey>
  /** Submits a document of the operator (docs/unsealing.md). */
  unseal(document: string): Promise<UnsealAnswer>
  providers(): Promise<readonly ProviderProof[]>
  /** Like `providers`, at most a quarter of a second old. */
  recentProofs(): Promise<readonly ProviderProof[]>
  /** The bytes of one piece of evidence; undefined: the daemon no longer holds it. */
  evidence(sha256: string): Promise<Bytes | undefined>
  /**
   * Makes a call to a provider through the daemon; resolves when the response headers have arrived.
   * @throws LinkUnavailable when the daemon does not answer
   */
  egress(provider: string, path: string, init: LinkInit): Promise<CarriedAnswer>
  /**
   * Ends a stream whose chunks the daemon writes, if it is still open. To be called once for each stream.
   * @returns the record by which the stream is settled
   * @throws LinkUnavailable when the daemon does not answer
   */
  endStream(stream: string): Promise<StreamRecord>
  /**
   * Parses the record that the daemon has sent at the end of a stream.
   * @throws LinkUnavailable when it is malformed
   */
  streamRecord(json: string): Promise<StreamRecord>
}

/** A watch over one daemon thread. */
export interface ThreadWatch {
  /** The thread's id, where it is known. */
  readonly thread: string | undefined
  /**
   * To be called when a call broke off.
   * @returns undefined where the thread still answers; an error where it no longer does, or was restarted meanwhile, so that
   *   the failed call says nothing about its provider
   */
  loss(): Promise<LinkUnavailable | undefined>
}

/** The content of a receipt in the form that the daemon accepts. */
export type UnsignedReceipt = SignRequest['receipts'][number]

/** A receipt, and the key that signed it. */
export interface SignedReceipt {
  readonly kid: string
  /** The beginning of the compact JWS, shared with other receipts. */
  readonly head: ReceiptHead
  /** The rest of the compact JWS. */
  readonly tail: string
  /** SHA-256 of the whole compact JWS, lowercase hex. */
  readonly sha256: string
}

/** A receipt that comes together with an answer. */
export interface IncludedReceipt {
  /** The SHA-256 of the head that need not be sent, where one is known. */
  readonly knownHead: string | undefined
  /**
   * Builds the receipt from what the daemon has signed.
   * @throws LinkUnavailable when it is malformed
   */
  take(signed: SignResponse): SignedReceipt
}

/** The parameters of a fresh envelope. */
export interface FreshAttestation {
  /** 64 lowercase hex digits. */
  readonly nonce: string
  /** The source whose budget is charged. */
  readonly source: string
}

export type AttestationAnswer =
  | { readonly ok: true; readonly envelope: string }
  | { readonly ok: false; readonly reason: 'unavailable' | 'rate_limited' }

export type DecapsulatedKey =
  | { readonly ok: true; readonly secrets: readonly Bytes[] }
  | { readonly ok: false; readonly reason: DecapsulateRefusal }

/**
 * Why an encapsulated key is not accepted: malformed; used before; the owner has reached its share of the key's uses; or the
 * memory of used keys is full.
 */
export type DecapsulateRefusal = 'malformed' | 'replayed' | 'share' | 'used_up'

/** The kind of failure of the daemon. */
export type LinkFailure = 'unreachable' | 'refused' | 'broken_off' | 'malformed'

/** Descriptions of these failures. */
export const LINK_FAILURES: Readonly<Record<LinkFailure, string>> = {
  unreachable: 'the enclave daemon cannot be reached',
  refused: 'the enclave daemon refused',
  broken_off: 'the enclave daemon broke off its answer',
  malformed: 'the enclave daemon answered in an unknown form',
}

/** The daemon does not answer, or answers with an invalid message: no new work may start. */
export class LinkUnavailable extends Error {
  readonly failure: LinkFailure | undefined

  constructor(message: string, options?: ErrorOptions & { readonly failure?: LinkFailure }) {
    super(message, options)
    this.name = 'LinkUnavailable'
    this.failure = options?.failure
  }
}
