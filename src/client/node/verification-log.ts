import type { Client } from '../client.ts'
import { AttestationRefused } from '../errors.ts'
import type { ReceiptOutcome } from '../receipt-outcome.ts'
import { messageOfThrown } from '../../protocol/thrown-message.ts'

/** The content of `/verification`: times are RFC 3339. */
export interface VerificationState {
  readonly router: string
  readonly proven: boolean
  /** Whether a proven host is on a simulated platform, which proves nothing about any machine. */
  readonly simulated: boolean
  /** Why the last attempt failed, where it did. */
  readonly problem: {
    readonly at: string
    readonly failed: readonly string[]
    readonly message: string
  } | null
  readonly hosts: readonly ProvenHost[]
  /** Newest first. */
  readonly receipts: readonly LoggedReceipt[]
}

export interface ProvenHost {
  readonly tls_spki_sha256: string
  readonly proven_at: string
  readonly expires_at: string
  readonly workload: string
  readonly workload_identity_tag: string
  readonly environment: string
  readonly simulated: boolean
  readonly checks: readonly {
    readonly name: string
    readonly ok: boolean
    readonly proves: string
    readonly detail: string
  }[]
  readonly notes: readonly string[]
}

export interface LoggedReceipt {
  readonly at: string
  readonly path: string
  readonly id: string | null
  readonly holds: boolean
  readonly simulated: boolean
  readonly failed: readonly string[]
  readonly route: string | null
}

const MAX_RECEIPTS = 50

/** The proven hosts and verified receipts, for display. It contains nothing of requests or answers. */
export class VerificationLog {
  readonly #client: Client
  readonly #router: URL
  readonly #now: () => number
  #problem: VerificationState['problem'] = null
  #receipts: LoggedReceipt[] = []

  constructor({ client, now, router }: { client: Client; now: () => number; router: URL }) {
    this.#client = client
    this.#now = now
    this.#router = router
  }

  proven(): void {
    this.#problem = null
  }

  failed(error: unknown): void {
    if (error instanceof DOMException && error.name === 'AbortError') return
    const message = messageOfThrown(error)
    const failed = error instanceof AttestationRefused ? error.failed : []
    this.#problem = { at: rfc3339(this.#now()), failed, message }
  }

  add({ claims, failed, id, ok, path, simulated }: ReceiptOutcome): void {
    const entry = {
      at: rfc3339(this.#now()),
      path,
      id: id ?? null,
      holds: ok,
      simulated,
      failed,
      route: claims?.routed_model ?? null,
    }
    this.#receipts = [entry, ...this.#receipts].slice(0, MAX_RECEIPTS)
  }

  state(): VerificationState {
    const proofs = this.#client.proofs()
    return {
      router: this.#router.origin,
      proven: proofs.length > 0 && this.#problem === null,
      simulated: proofs.some(({ simulated }) => simulated),
      problem: this.#problem,
      hosts: proofs.map(
        ({ bundle, checks, envelope, expiresAt, notes, provenAt, simulated, tlsSpkiSha256 }) => ({
          tls_spki_sha256: tlsSpkiSha256,
          proven_at: rfc3339(provenAt),
          expires_at: rfc3339(expiresAt),
          workload: envelope.workload,
          workload_identity_tag: envelope.workload_identity_tag,
          environment: bundle.environment,
          simulated,
          checks: checks.map(({ detail, name, ok, proves }) => ({ name, ok, proves, detail })),
          notes,
        }),
      ),
      receipts: this.#receipts,
    }
  }
}

function rfc3339(milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}
