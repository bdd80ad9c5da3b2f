import { parseCompactJws, verifyJwsSignature } from '../../protocol/compact-jws.ts'
import { jwkThumbprint, type EcPoint } from '../../protocol/jwk.ts'
import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import { readDocument } from '../../protocol/read-document.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import {
  MAX_VALIDITY_SECONDS,
  UNSEAL_REFUSALS,
  UNSEAL_TYP,
  unsealDocumentSchema,
  type UnsealAnswer,
  type UnsealDocument,
  type UnsealRefusal,
} from '../../protocol/unseal.ts'
import { headerFault } from '../../verify/jws.ts'
import type { Log } from '../log.ts'
import { CLOCK_BEHIND_MS, type ProvenTime } from '../clock/proven-time.ts'
import type { NonceMemory } from './nonce-memory.ts'

/** The values that a document must match. */
export interface UnsealTarget {
  /** Absent: this router accepts no documents. */
  readonly operatorKey: EcPoint | undefined
  readonly configurationSha256: string
  readonly tlsSpkiSha256: string
}

export interface UnsealDeps {
  readonly target: () => UnsealTarget
  readonly nonces: NonceMemory
  readonly proven: ProvenTime
  /** Milliseconds. */
  readonly now: () => number
  readonly log: Log
  /** Puts secrets into effect. Returns the reason for a failure, for the operator, or null; never a secret. */
  readonly offer: (document: UnsealDocument) => Promise<string | null>
}

const DOCUMENT = 'unseal document'

/**
 * Accepts the documents with which an operator passes secrets to this router: signed with the operator's key, within
 * their validity, for the attested TLS key and configuration, and for a nonce that was attested here and not used
 * since. Every other document is refused with a reason, and refusals are counted per reason.
 */
export class UnsealGate {
  readonly #deps: UnsealDeps
  readonly #refused = new Map<UnsealRefusal, number>()

  constructor(deps: UnsealDeps) {
    this.#deps = deps
  }

  /** How often each refusal occurred. */
  get refused(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#refused)
  }

  async accept(jws: string): Promise<UnsealAnswer> {
    const read = await this.#read(jws)
    if (typeof read === 'string') return this.#refuse(read)
    const fault = this.#faultOf(read)
    if (fault !== undefined) return this.#refuse(fault)
    this.#deps.proven.note(read.issued_at * 1000)
    const problem = await this.#deps.offer(read)
    if (problem !== null) return this.#refuse('secrets_refused', problem)
    this.#deps.log('unsealed', {})
    return { outcome: 'accepted' }
  }

  async #read(jws: string): Promise<UnsealDocument | UnsealRefusal> {
    const { operatorKey } = this.#deps.target()
    if (operatorKey === undefined) return 'not_configured'
    try {
      const parsed = parseCompactJws(jws, DOCUMENT)
      if (headerFault(parsed, [UNSEAL_TYP]) !== undefined) return 'malformed'
      if (parsed.header.kid !== (await jwkThumbprint(operatorKey))) return 'bad_signature'
      if (!(await verifyJwsSignature(parsed, operatorKey, 'ES256'))) return 'bad_signature'
      return readDocument(unsealDocumentSchema, parseStrictJson(parsed.payload, DOCUMENT), DOCUMENT)
    } catch (error) {
      if (error instanceof MalformedEvidence) return 'malformed'
      throw error
    }
  }

  /** The nonce is checked last, because checking uses it up. */
  #faultOf(document: UnsealDocument): UnsealRefusal | undefined {
    const { configurationSha256, tlsSpkiSha256 } = this.#deps.target()
    const { issued_at: from, expires_at: until } = document
    const now = Math.floor(this.#deps.now() / 1000)
    if (from * 1000 > this.#deps.now() + CLOCK_BEHIND_MS) return 'not_yet_valid'
    if (this.#deps.proven.isAhead()) return 'not_yet_valid'
    if (until <= now) return 'expired'
    if (until - from > MAX_VALIDITY_SECONDS) return 'validity_too_long'
    if (document.tls_spki_sha256 !== tlsSpkiSha256) return 'wrong_router'
    if (document.configuration_sha256 !== configurationSha256) return 'wrong_configuration'
    if (!this.#deps.nonces.take(document.nonce)) return 'unknown_nonce'
    return undefined
  }

  #refuse(reason: UnsealRefusal, problem?: string): UnsealAnswer {
    this.#refused.set(reason, (this.#refused.get(reason) ?? 0) + 1)
    this.#deps.log('unseal_refused', { reason })
    const message = UNSEAL_REFUSALS[reason]
    return {
      outcome: 'refused',
      reason,
      message: problem === undefined ? message : `${message}: ${problem}`,
    }
  }
}
