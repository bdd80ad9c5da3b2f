import { z } from 'zod'
import { fromBase64, fromHex, type Bytes } from '../../protocol/bytes.ts'
import {
  decapsulateAnswerSchema,
  hpkeAnswerSchema,
  LINK_PATHS,
  linkConfigSchema,
  linkStateSchema,
  signResponseSchema,
  type LinkState,
  type SignRequest,
  type SignResponse,
} from '../../protocol/link.ts'
import { providerProofSchema, type ProviderProof } from '../../protocol/provider-proof.ts'
import { streamRecordSchema } from '../../protocol/stream-record.ts'
import { unsealAnswerSchema } from '../../protocol/unseal.ts'
import { wholeAnswerRecordSchema } from '../../protocol/whole-answer.ts'
import type { BatchDeps } from '../batching/batcher.ts'
import { OwnSignal } from '../calls/own-signal.ts'
import { startDeadline } from '../batching/deadline-timer.ts'
import {
  LINK_FAILURES,
  LinkUnavailable,
  type AttestationAnswer,
  type CarriedAnswer,
  type DecapsulatedKey,
  type DecapsulateRefusal,
  type Link,
  type LinkFailure,
  type IncludedReceipt,
  type SignedReceipt,
  type ThreadWatch,
} from './link.ts'
import { batchedSigning } from './batched-signing.ts'
import { DaemonState } from './daemon-state.ts'
import { LastHeads } from './last-head.ts'
import type { LinkAnswer } from './link-answer.ts'
import { BOUND_ORIGIN, type LinkCalls, type LinkInit } from './link-calls.ts'

/** The refusal of an encapsulated key, by the status of the daemon's answer. */
const DECAPSULATE_REFUSALS: ReadonlyMap<number, DecapsulateRefusal> = new Map([
  [400, 'malformed'],
  [409, 'replayed'],
  [429, 'share'],
  [507, 'used_up'],
])

/** Timeout of most calls, ms. A live daemon answers within milliseconds; a frozen one must not hold a request for long. */
const CALL_TIMEOUT_MS = 3_000

/** Timeout of calls that capture evidence, ms: a capture may have to wait for the platform's firmware. */
const CAPTURE_TIMEOUT_MS = 65_000

// Only the form is checked, because the daemon's exact bytes are served; verifiers check the rest.
const envelopeFormSchema = z.looseObject({ schema: z.string() })
const trustFormSchema = z.looseObject({ trust_bundle_jws: z.string() })

/**
 * Timeout of signing, ms. The exchange has already been delivered, so a longer wait is justified when a thousand streams end
 * at once.
 */
const SIGN_TIMEOUT_MS = 5_000

const providersSchema = z.object({ providers: z.array(providerProofSchema) })

interface LinkCall {
  readonly path: string
  readonly init: LinkInit
  readonly timeoutMs: number
}

/** The link to the daemon over HTTP inside pinned mTLS. */
export class HttpLink implements Link {
  readonly #binding: LinkCalls
  readonly #onFailure: (failure: LinkFailure) => void
  readonly #origin: string
  readonly #now: () => number
  /** Batches receipts of concurrent requests into one call. */
  readonly sign: Link['sign']
  readonly #heads = new LastHeads()
  readonly #daemonState: DaemonState<LinkState>
  readonly #proofs: DaemonState<readonly ProviderProof[]>

  /**
   * @param onFailure called for each failure of the daemon
   * @param origin the daemon's origin, for bindings that do not determine it
   */
  constructor(
    binding: LinkCalls,
    host: BatchDeps,
    onFailure: (failure: LinkFailure) => void = () => {},
    origin: string = BOUND_ORIGIN,
  ) {
    this.#binding = binding
    this.#onFailure = onFailure
    this.#now = host.now
    this.#origin = origin
    const fetchState = () => this.#json(LINK_PATHS.state, linkStateSchema)
    this.#daemonState = new DaemonState(fetchState, host, CALL_TIMEOUT_MS)
    this.#proofs = new DaemonState(() => this.providers(), host, CALL_TIMEOUT_MS)
    this.sign = batchedSigning(host, (request) => this.#sign(request), this.#heads)
  }

  state(): Promise<LinkState> {
    return this.#daemonState.recent()
  }

  stateReadAfter(time: number): Promise<LinkState> {
    return this.#daemonState.readAfter(time)
  }

  freshState(): Promise<LinkState> {
    return this.#daemonState.fresh()
  }

  watchThread(): ThreadWatch {
    const thread = this.#daemonState.last?.thread
    const loss = async () => {
      try {
        const now = await this.stateReadAfter(this.#now())
        const lives = thread === undefined || now.thread === thread
        return lives ? undefined : this.#failure('broken_off')
      } catch (error) {
        if (error instanceof LinkUnavailable) return error
        throw error
      }
    }
    return { thread, loss }
  }

  config() {
    return this.#json(LINK_PATHS.config, linkConfigSchema)
  }

  includedReceipt(provider: string): IncludedReceipt {
    const heads = this.#heads.of(provider)
    const { known } = heads
    const take = (signed: SignResponse): SignedReceipt => {
      try {
        const [receipt] = heads.receiptsOf(signed, 1, known)
        if (receipt !== undefined) return receipt
      } catch (cause) {
        throw this.#failure('malformed', cause)
      }
      throw this.#failure('malformed')
    }
    return { knownHead: known?.sha256, take }
  }

  #sign(request: SignRequest): Promise<SignResponse> {
    const init = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(request),
    }
    return this.#json(LINK_PATHS.sign, signResponseSchema, init, SIGN_TIMEOUT_MS)
  }

  async attestation(fresh?: Parameters<Link['attestation']>[0]): Promise<AttestationAnswer> {
    const query = fresh === undefined ? '' : `?${new URLSearchParams({ ...fresh })}`
    const path = `${LINK_PATHS.attestation}${query}`
    const { ok, status, body } = await this.#exchange(path, {}, CAPTURE_TIMEOUT_MS)
    if (ok) {
      this.#parse(body, envelopeFormSchema)
      return { ok: true, envelope: body }
    }
    return { ok: false, reason: status === 429 ? 'rate_limited' : 'unavailable' }
  }

  async trustBundle(): Promise<string> {
    const { ok, body } = await this.#exchange(LINK_PATHS.trust)
    if (!ok) throw this.#failure('refused')
    this.#parse(body, trustFormSchema)
    return body
  }

  async hpkeKeyConfig(): Promise<Bytes> {
    const answer = await this.#json(LINK_PATHS.hpke, hpkeAnswerSchema)
    return fromBase64(answer.key_config_b64)
  }

  async decapsulate(enc: string, owner: string | null): Promise<DecapsulatedKey> {
    const init = { method: 'POST', body: JSON.stringify({ enc, owner }) }
    const { ok, status, body } = await this.#exchange(LINK_PATHS.hpke, init)
    if (ok) {
      const { shared_secrets: secrets } = this.#parse(body, decapsulateAnswerSchema)
      return { ok: true, secrets: secrets.map(fromHex) }
    }
    const reason = DECAPSULATE_REFUSALS.get(status)
    if (reason === undefined) throw this.#failure('refused')
    return { ok: false, reason }
  }

  unseal(document: string) {
    const post = { method: 'POST', body: document }
    return this.#json(LINK_PATHS.unseal, unsealAnswerSchema, post, CAPTURE_TIMEOUT_MS)
  }

  recentProofs(): Promise<readonly ProviderProof[]> {
    return this.#proofs.recent()
  }

  async providers() {
    return (await this.#json(LINK_PATHS.providers, providersSchema)).providers
  }

  evidence(sha256: string): Promise<Bytes | undefined> {
    const call = { path: `${LINK_PATHS.evidence}/${sha256}`, init: {}, timeoutMs: CALL_TIMEOUT_MS }
    return this.#call(call, async (response) => {
      const bytes = new Uint8Array(await response.arrayBuffer())
      return response.ok ? bytes : undefined
    })
  }

  async egress(provider: string, path: string, init: LinkInit): Promise<CarriedAnswer> {
    const response = await this.#carried(provider, path, init)
    if (response.whole === undefined) return { response, whole: undefined }
    const whole = wholeAnswerRecordSchema.safeParse(response.whole)
    if (whole.success) return { response, whole: whole.data }
    throw this.#failure('malformed')
  }

  async #carried(provider: string, path: string, init: LinkInit): Promise<LinkAnswer> {
    const url = `${this.#origin}${LINK_PATHS.egress}/${encodeURIComponent(provider)}${path}`
    try {
      return await this.#binding.fetch(url, init)
    } catch (cause) {
      // Throws the signal's own reason: if a body is aborted with it, the runtime rejects with a copy of another class.
      init.signal?.throwIfAborted()
      throw this.#failure('unreachable', cause)
    }
  }

  async endStream(stream: string) {
    const path = `${LINK_PATHS.streams}/${stream}`
    const ask = () => this.#json(path, streamRecordSchema, { method: 'DELETE' }, SIGN_TIMEOUT_MS)
    try {
      return await ask()
    } catch {
      // Retried once: without its record a delivered stream is cut and its output is not billed, and a daemon that was only
      // slow still has the record.
      return ask()
    }
  }

  async streamRecord(json: string) {
    return this.#parse(json, streamRecordSchema)
  }

  async #json<T>(
    path: string,
    schema: z.ZodType<T>,
    init: LinkInit = {},
    timeoutMs = CALL_TIMEOUT_MS,
  ): Promise<T> {
    const { ok, body } = await this.#exchange(path, init, timeoutMs)
    if (!ok) throw this.#failure('refused')
    return this.#parse(body, schema)
  }

  #parse<T>(body: string, schema: z.ZodType<T>): T {
    try {
      return schema.parse(JSON.parse(body))
    } catch (cause) {
      throw this.#failure('malformed', cause)
    }
  }

  #exchange(path: string, init: LinkInit = {}, timeoutMs = CALL_TIMEOUT_MS) {
    return this.#call({ path, init, timeoutMs }, async (response) => {
      const { ok, status } = response
      return { ok, status, body: await response.text() }
    })
  }

  /** Makes one call and reads its whole answer, within a time limit. */
  async #call<Answer>(
    { path, init, timeoutMs }: LinkCall,
    read: (response: LinkAnswer) => Promise<Answer>,
  ): Promise<Answer> {
    const signal = new OwnSignal()
    const passed = () => signal.abort(new Error('the daemon did not answer in time'))
    const deadline = startDeadline(timeoutMs, this.#now, passed)
    let failure: LinkFailure = 'unreachable'
    try {
      const response = await this.#binding.fetch(`${this.#origin}${path}`, { ...init, signal })
      failure = 'broken_off'
      return await read(response)
    } catch (cause) {
      throw this.#failure(failure, cause)
    } finally {
      deadline.stop()
    }
  }

  #failure(failure: LinkFailure, cause?: unknown): LinkUnavailable {
    this.#onFailure(failure)
    return new LinkUnavailable(LINK_FAILURES[failure], { cause, failure })
  }
}
