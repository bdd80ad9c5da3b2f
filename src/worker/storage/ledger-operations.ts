import type { RouterConfig } from '../../protocol/config.ts'

/**
 * The ledger operations that every request needs. Their data is plain JSON data, so that an engine may run them wherever its
 * data is: in the object or process that holds the accounts, or in a function of the database. Money is decimal text in
 * nano-EUR, times are ms since the epoch. An engine may carry out operations that arrive together in one call and one
 * transaction. Each is atomic and idempotent.
 */
export interface LedgerOperations {
  /**
   * Admits a request and reserves the most that it may cost, or changes nothing. Undefined: there is no such key.
   * @throws StorageUnavailable when the engine does not answer
   */
  admit(entry: AdmissionEntry): Promise<AdmissionFacts | undefined>
  /**
   * Bills a request: balance, usage row, receipt, reservation and claim.
   * @throws StatementRefused when a value leaves its range; nothing is stored then
   * @throws StorageUnavailable when the engine does not answer
   */
  settle(entry: SettlementEntry): Promise<SettlementResult>
  /**
   * Removes the reservation and the open claim of a request that costs nothing; returns whether there was a reservation.
   * @throws StorageUnavailable when the engine does not answer
   */
  release(requestId: string): Promise<boolean>
  /**
   * Finds a key, and loads into the engine's memory what admissions with it need. Resolves to undefined where there is no
   * such key. Absent where an engine has no such memory.
   * @throws StorageUnavailable when the engine does not answer
   */
  readonly findKey?: ((key: LedgerKey) => Promise<KeyFacts | undefined>) | undefined
  /**
   * Stores a piece of evidence for the customer's receipts that name it. Absent where the engine does this with a batch of
   * SQL.
   * @throws StatementRefused when a value leaves its range
   * @throws StorageUnavailable when the engine does not answer
   */
  readonly storeEvidence?: ((evidence: StoredEvidence) => Promise<void>) | undefined
}

export interface StoredEvidence {
  readonly customerId: string
  readonly sha256: string
  /** Standard base64 of the exact bytes. */
  readonly dataB64: string
  /** The end of its retention, ms. */
  readonly expiresAt: number
}

/** A key as it was presented. */
export interface LedgerKey {
  readonly customerId: string
  readonly keyPrefix: string
  /** SHA-256 of the whole key, lowercase hex. */
  readonly keyHash: string
}

/** The facts about a key that exists. */
export interface KeyFacts {
  readonly keyName: string
  /** When the key expires; null: never. */
  readonly expiresAt: number | null
  /** When the presented secret of a rotated key expires; null: it is the current one. */
  readonly secretEndsAt: number | null
}

export interface AdmissionEntry {
  readonly requestId: string
  readonly key: LedgerKey
  /** The plans of the configuration; `termsOfPlan` finds the customer's plan among them. */
  readonly plans: RouterConfig['plans']
  /** The maximum cost of the request, by plan discount in whole percent: one entry for each discount in `plans`. */
  readonly reserveNano: Readonly<Record<string, string>>
  /** The claim of the request's `Idempotency-Key`, where it has one. */
  readonly claim: Claim | null
  /** When the reservation expires. */
  readonly expiresAt: number
  readonly now: number
}

/** A request with an `Idempotency-Key`; see `settle/claims.ts`. */
export interface Claim {
  /** Identifies customer and key; lowercase hex. */
  readonly name: string
  /** Digest of method, path and body under a key that only the caller can derive; lowercase hex. */
  readonly fingerprint: string
  /** How long the answer is kept after the request is settled, ms. */
  readonly lifetimeMs: number
  /** Maximum bytes of kept answers of the customer; beyond it the oldest are removed. */
  readonly customerBytes: number
}

/** The terms of the key and of its customer, and the state of the limits after the decision. */
export interface AdmissionFacts extends KeyFacts {
  /** Whether the request has a reservation. */
  readonly admitted: boolean
  readonly customerName: string
  readonly plan: string
  readonly receiptRetentionDays: number | null
  readonly suspended: boolean
  /** JSON array of selectors; null: all models. */
  readonly models: string | null
  readonly minAttestation: string | null
  /** Limits of the key itself; null: none. */
  readonly requestsPerMinute: number | null
  readonly tokensPerMinute: number | null
  readonly concurrentRequests: number | null
  readonly windowStartedAt: number
  readonly windowRequests: number
  readonly windowTokens: number
  /** Of a request that was not admitted: whether another request holds its claim. */
  readonly isRepeat: boolean
  /** Of a request that was not admitted: whether the key's limit in euros is the reason. */
  readonly overLimit: boolean
  /** Of a request that was not admitted: open requests of the key. */
  readonly openRequests: number
}

export interface SettlementEntry {
  /** Also the id of the usage row. */
  readonly requestId: string
  readonly customerId: string
  readonly keyPrefix: string
  readonly claim: Claim | null
  readonly usage: UsageColumns
  readonly receipt: StoredReceipt | null
  /** The encrypted answer for repeats of a request with a claim; null: none is kept. */
  readonly answer: string | null
  /** A prepaid balance below this is reported; null: the operator has no webhooks. */
  readonly alertBelowNano: string | null
}

/** The columns of a usage row, except its number and key. */
export interface UsageColumns {
  readonly model: string
  readonly modality: string
  readonly provider: string
  readonly region: string | null
  readonly billingUnit: string
  readonly audioSeconds: number | null
  readonly promptTokens: number
  readonly completionTokens: number
  readonly costNano: string
  readonly discountPct: number
  readonly usdEur: string | null
  readonly capped: boolean
  readonly failover: boolean
  /** The row is never dated before the customer's latest one. */
  readonly createdAtMs: number
}

export interface StoredReceipt {
  readonly id: string
  /** The compact JWS as it is stored: its head is stored separately (`stored-jws.ts`). */
  readonly jws: string
  /** SHA-256 of the compact JWS string, lowercase hex. */
  readonly sha256: string
  readonly kid: string
  readonly expiresAtMs: number
  /** SHA-256 of each piece of evidence that the receipt names by digest. */
  readonly evidenceRefs: readonly string[]
}

export interface SettlementResult {
  /** `claim_lost`: another request has taken over the claim, and nothing was stored. `no_account`: no such customer. */
  readonly outcome: 'settled' | 'claim_lost' | 'no_account'
  /** Evidence that the receipt names and that is not stored yet. */
  readonly missingEvidence: readonly string[]
}
