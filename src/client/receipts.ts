import * as z from 'zod'
import type { Bytes } from '../protocol/bytes.ts'
import { parseCompactJws } from '../protocol/compact-jws.ts'
import { MalformedEvidence } from '../protocol/malformed-evidence.ts'
import type { Constraints } from '../protocol/constraints.ts'
import { sha256Hex } from '../protocol/digest.ts'
import { receiptEndpointOf } from '../protocol/receipt.ts'
import { evidenceReferences, readEvidenceList } from '../verify/evidence-references.ts'
import { keySetSchema } from '../verify/key-set.ts'
import { verifyReceipt } from '../verify/receipt.ts'
import { addressOf, type BundleState, type Settings } from './options.ts'
import type { ReceiptOutcome } from './receipt-outcome.ts'
import { readWithin } from './read-within.ts'
import type { Transport } from './transport.ts'

/** The digests of what this client sent and received, and the receipt's id. */
export interface Exchange {
  readonly path: string
  readonly receiptId: string | undefined
  readonly requestSha256: string
  readonly responseSha256: string
  /**
   * What the request requires of its provider; the receipt must repeat it.
   * @throws MalformedEvidence when it cannot be read
   */
  readonly constraints: () => Promise<Constraints | undefined>
  /** The headers that identify the customer, to fetch the receipt with. */
  readonly credentials: Readonly<Record<string, string>>
}

const answerSchema = z.object({ id: z.string(), receipt: z.string() })

/** Fetches receipts over the verified connection and compares them with what was actually sent and received. */
export class ReceiptVerifier {
  readonly #settings: Settings
  readonly #transport: Transport
  readonly #state: Pick<BundleState, 'read'>
  #keys: z.output<typeof keySetSchema> | undefined
  /** Cached envelopes: receipts of about an hour refer to the same one. */
  readonly #evidence = new Map<string, Bytes>()

  constructor(settings: Settings, transport: Transport, state: Pick<BundleState, 'read'>) {
    this.#settings = settings
    this.#transport = transport
    this.#state = state
  }

  /** Verifies the receipt of an exchange. Never rejects: errors are part of the result. */
  async verify(exchange: Exchange): Promise<ReceiptOutcome> {
    const { path, receiptId: id } = exchange
    const nothing = {
      ok: false,
      path,
      id,
      receipt: undefined,
      checks: [],
      notes: [],
      simulated: false,
      claims: undefined,
    }
    if (id === undefined) return { ...nothing, failed: ['receipt_missing'] }
    try {
      return await this.#verify(id, exchange)
    } catch (error) {
      if (error instanceof MalformedEvidence) {
        return { ...nothing, failed: [error.document], notes: [error.message] }
      }
      const why = error instanceof Error ? error.message : 'it cannot be fetched'
      return { ...nothing, failed: ['receipt_unavailable'], notes: [why] }
    }
  }

  async #verify(id: string, exchange: Exchange): Promise<ReceiptOutcome> {
    const path = `/v1/receipts/${encodeURIComponent(id)}`
    const constraints = await exchange.constraints()
    const { receipt } = answerSchema.parse(parseJson(await this.#get(path, exchange.credentials)))
    const { deps, environments, policy, rootJwk } = this.#settings
    const jwks = await this.#keysFor(receipt)
    const evidence = await this.#evidenceOf(receipt, path, exchange.credentials)
    // Read only now: the router decides how long its answers take, and a newer bundle may have been stored in the
    // meantime.
    const lastAccepted = await this.#state.read(rootJwk)
    const { ok, checks, notes, claims, simulated } = await verifyReceipt(receipt, {
      now: deps.now(),
      jwks,
      evidence,
      router: { rootJwk, environments, bundles: this.#bundles(lastAccepted?.jws), lastAccepted },
      simulated: policy.allowSimulated === true ? 'any' : 'refuse',
      requireCrl: policy.requireCrl === true,
      ...(deps.anchors === undefined ? {} : { anchors: deps.anchors }),
      judgeProviderHop: policy.judgeProviderHop,
      requireProvider: policy.requireProvider === true,
      expected: {
        id,
        endpoint: receiptEndpointOf(exchange.path),
        clientRequestSha256: exchange.requestSha256,
        clientResponseSha256: exchange.responseSha256,
        constraints,
      },
    })
    const failed = checks.filter((check) => !check.ok).map(({ name }) => name)
    return { ok, path: exchange.path, id, receipt, checks, failed, notes, simulated, claims }
  }

  /**
   * The bundles that the router published with its proofs, and the stored one, which another program may have stored
   * since: a receipt is checked for everything that was revoked in the meantime.
   */
  #bundles(stored: string | undefined): string[] {
    const proven = this.#transport.proofs().map(({ bundleJws }) => bundleJws)
    return [...new Set([...proven, ...(stored === undefined ? [] : [stored])])]
  }

  async #keysFor(receipt: string): Promise<unknown> {
    const { kid } = parseCompactJws(receipt, 'receipt').header
    if (this.#keys?.keys.some((key) => key.kid === kid) !== true) {
      this.#keys = keySetSchema.parse(parseJson(await this.#get('/.well-known/jwks.json')))
    }
    return this.#keys
  }

  /**
   * Fetches the evidence of a receipt. Envelopes are public and shared by many receipts, so they are cached; other
   * evidence is the customer's and is fetched each time.
   */
  async #evidenceOf(
    receipt: string,
    path: string,
    credentials: Exchange['credentials'],
  ): Promise<ReadonlyMap<string, Bytes>> {
    const { references } = evidenceReferences(receipt)
    const missing = references.filter((sha256) => !this.#evidence.has(sha256))
    await Promise.all(
      missing.map(async (sha256) => {
        const envelope = await this.#get(`/attestation/${sha256}`).catch(() => undefined)
        // A party that relays the answer could return another document: only the requested one may be cached.
        if (envelope !== undefined && (await sha256Hex(envelope)) === sha256) {
          this.#remember(sha256, envelope)
        }
      }),
    )
    if (references.every((sha256) => this.#evidence.has(sha256))) return this.#evidence
    const list = await this.#get(`${path}/evidence`, credentials).catch(() => undefined)
    if (list === undefined) return this.#evidence
    return new Map([...this.#evidence, ...readEvidenceList(list)])
  }

  #remember(sha256: string, envelope: Bytes): void {
    const [oldest] = this.#evidence.keys()
    if (this.#evidence.size >= MAX_CACHED_ENVELOPES && oldest !== undefined) {
      this.#evidence.delete(oldest)
    }
    this.#evidence.set(sha256, envelope)
  }

  async #get(path: string, headers: Exchange['credentials'] = {}): Promise<Bytes> {
    const answer = await this.#transport.send({
      url: addressOf(this.#settings, path),
      method: 'GET',
      headers: new Headers(headers),
      body: undefined,
      signal: AbortSignal.timeout(FETCH_TIMEOUT_MS),
    })
    const body = await readWithin(answer.body, MAX_DOCUMENT_BYTES)
    if (answer.status !== 200) throw new Error(`${path} is answered with ${answer.status}`)
    return body
  }
}

const MAX_CACHED_ENVELOPES = 64
const FETCH_TIMEOUT_MS = 60_000

/** Every genuine document is smaller. */
const MAX_DOCUMENT_BYTES = 16 * 1024 * 1024

function parseJson(bytes: Bytes): unknown {
  return JSON.parse(new TextDecoder().decode(bytes))
}
