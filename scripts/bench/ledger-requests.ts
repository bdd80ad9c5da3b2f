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
 * The number of requests whose operations share one call of a worker. Two workers that served 1,300 requests/s
 * together, 650 each, made 0.15 calls per request (docs/performance.md, "What more cores give"); 16 workers at 12,000
 * requests/s serve 750 each.
 */
export const REQUESTS_PER_CALL = 7

/**
 * The number of characters of a stored receipt after the reference to its head, as the router stores it in this
 * benchmark.
 */
const TAIL_CHARACTERS = 867

/**
 * The number of different random receipt texts, which are reused in turn: making one takes as long as the ledger's work
 * for one.
 */
const TAILS = 256

const RESERVED_FOR_MS = 240_000
const RETENTION_MS = 30 * 86_400_000

/** The plans of the configuration, sent with each call. */
const PLANS: AdmissionEntry['plans'] = { standard: { discount_pct: 0 } }

interface Admitted {
  readonly requestId: string
  readonly key: LedgerKey
}

/** Makes the operations of one worker: each request is admitted in one call and settled in the next. */
export class LedgerRequests {
  readonly #keys: readonly LedgerKey[]
  readonly #newId: () => string
  readonly #tails = Array.from({ length: TAILS }, () =>
    randomBytes(TAIL_CHARACTERS).toString('base64url').slice(0, TAIL_CHARACTERS),
  )
  #admitted: readonly Admitted[] = []
  #turn: number

  /**
   * @param first the index of the key before the first one to use
   * @param newId makes the ids of requests and receipts
   */
  constructor(keys: readonly LedgerKey[], first: number, newId: () => string) {
    this.#keys = keys
    this.#newId = newId
    this.#turn = first
  }

  /**
   * The operations of the next call: `REQUESTS_PER_CALL` admissions, interleaved with the settlements of the requests
   * that the previous call admitted.
   */
  next(now: number): readonly LedgerCall[] {
    const settled = this.last(now)
    this.#admitted = Array.from({ length: REQUESTS_PER_CALL }, () => this.#nextRequest())
    return this.#admitted.flatMap((admitted, index) => {
      const before = settled[index]
      const admission: LedgerCall = { kind: 'admit', entry: admissionOf(admitted, now) }
      return before === undefined ? [admission] : [before, admission]
    })
  }

  /** The operations of the last call: only settlements. */
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

/** Has the length of a signing key's id. */
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
