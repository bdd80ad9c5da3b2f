import { randomBytes } from 'node:crypto'
import type { LedgerCall } from '../../src/worker/storage/ledger-calls.ts'
import type {
  AdmissionEntry,
  LedgerKey,
  SettlementEntry,
} from '../../src/worker/storage/ledger-operations.ts'
import { storedJws } from '../../src/worker/storage/stored-jws.ts'
import { EVIDENCE_SHA256, HEAD_SHA256 } from './ledger-keys.ts'

/**
 * Requests whose operations share a call of a worker. Two workers that took 1,300 requests/s together, 650 each, made 0.15
 * calls a request (docs/performance.md, "What more cores give"); 16 of them at 12,000 take 750 each.
 */
export const REQUESTS_PER_CALL = 7

/** Characters of a stored receipt after the name of its head, as the router of this benchmark stores it. */
const TAIL_CHARACTERS = 867

/** Of how many receipts the random texts differ; making one takes as long as the ledger needs for it. */
const TAILS = 256

const RESERVED_FOR_MS = 240_000
const RETENTION_MS = 30 * 86_400_000

/** The configuration's plans; they are sent once for each call. */
const PLANS: AdmissionEntry['plans'] = { standard: { discount_pct: 0 } }

interface Admitted {
  readonly requestId: string
  readonly key: LedgerKey
}

/** The operations of one worker's requests: each is admitted in one call and settled in the next. */
export class LedgerRequests {
  readonly #keys: readonly LedgerKey[]
  readonly #newId: () => string
  readonly #tails = Array.from({ length: TAILS }, () =>
    randomBytes(TAIL_CHARACTERS).toString('base64url').slice(0, TAIL_CHARACTERS),
  )
  #admitted: readonly Admitted[] = []
  #turn: number

  /**
   * @param first which key is used first
   * @param newId makes the ids of requests and receipts
   */
  constructor(keys: readonly LedgerKey[], first: number, newId: () => string) {
    this.#keys = keys
    this.#newId = newId
    this.#turn = first
  }

  /** What the next call carries: as many admissions, among the settlements of those of the call before. */
  next(now: number): readonly LedgerCall[] {
    const settled = this.last(now)
    this.#admitted = Array.from({ length: REQUESTS_PER_CALL }, () => this.#nextRequest())
    return this.#admitted.flatMap((admitted, index) => {
      const before = settled[index]
      const admission: LedgerCall = { kind: 'admit', entry: admissionOf(admitted, now) }
      return before === undefined ? [admission] : [before, admission]
    })
  }

  /** What the last call carries: settlements only. */
  last(now: number): readonly LedgerCall[] {
    const settled = this.#admitted
    this.#admitted = []
    return settled.map((admitted) => ({ kind: 'settle', entry: this.#settlementOf(admitted, now) }))
  }

  #nextRequest(): Admitted {
    this.#turn += 1
    const key = this.#keys[this.#turn % this.#keys.length]
    if (key === undefined) throw new Error('there are no keys')
    return { requestId: this.#newId(), key }
  }

  #settlementOf({ requestId, key }: Admitted, now: number): SettlementEntry {
    const { customerId, keyPrefix } = key
    const tail = this.#tails[this.#turn++ % TAILS] ?? ''
    const receipt = {
      id: this.#newId(),
      jws: storedJws(HEAD_SHA256, tail),
      sha256: randomBytes(32).toString('hex'),
      kid: KID,
      expiresAtMs: now + RETENTION_MS,
      evidenceRefs: [EVIDENCE_SHA256],
    }
    const usage = { ...USAGE, createdAtMs: now }
    const none = { claim: null, answer: null, alertBelowNano: null }
    return { requestId, customerId, keyPrefix, usage, receipt, ...none }
  }
}

/** As long as the name of a signing key. */
const KID = 'k'.repeat(43)

/** A request of the benchmark as the router bills it. */
const USAGE = {
  model: 'direct/whole',
  modality: 'chat',
  provider: 'direct',
  region: 'eu',
  billingUnit: 'token',
  audioSeconds: null,
  promptTokens: 21,
  completionTokens: 14,
  costNano: '43400',
  discountPct: 0,
  usdEur: null,
  capped: false,
  failover: false,
} as const

function admissionOf({ requestId, key }: Admitted, now: number): AdmissionEntry {
  const reserveNano = { '0': '123456789' }
  const expiresAt = now + RESERVED_FOR_MS
  return { requestId, key, plans: PLANS, reserveNano, claim: null, expiresAt, now }
}
