import { z } from 'zod'
import {
  LINK_PATHS,
  linkConfigSchema,
  linkStateSchema,
  providerProofSchema,
  signResponseSchema,
  type LinkState,
  type SignRequest,
  type SignResponse,
} from '../../protocol/link.ts'
import { unsealAnswerSchema } from '../../protocol/unseal.ts'
import type { BatchDeps } from '../batching/batcher.ts'
import {
  LINK_FAILURES,
  LinkUnavailable,
  type AttestationAnswer,
  type Link,
  type LinkFailure,
} from './link.ts'
import { batchedSigning } from './batched-signing.ts'

/** What the worker needs of a binding: the pinned mTLS service, or a function that does the same. */
export interface LinkBinding {
  fetch(url: string, init?: RequestInit): Promise<Response>
}

/** Where the binding itself decides where a call goes, the host name in the URL never leaves the worker. */
const ORIGIN = 'https://enclave'

/** A live daemon answers within milliseconds; a frozen one must not hold a request for long. */
const CALL_TIMEOUT_MS = 3_000

/** A capture may wait for the platform's firmware. */
const CAPTURE_TIMEOUT_MS = 65_000

/** How old the daemon's state may be before a request asks again. */
const STATE_MAX_AGE_MS = 250

/** What is served as the very bytes the daemon gave is only looked at for its form; verifiers do the rest. */
const envelopeFormSchema = z.looseObject({ schema: z.string() })
const trustFormSchema = z.looseObject({ trust_bundle_jws: z.string() })

/** What is signed has been delivered and paid for: it is worth a longer wait when a thousand streams end at once. */
const SIGN_TIMEOUT_MS = 5_000

/** How often a request looks whether the answer that another one has asked for is there. */
const POLL_INTERVAL_MS = 5

const providersSchema = z.object({ providers: z.array(providerProofSchema) })

/** What the daemon last said of itself; times are ms since the epoch. */
interface KnownState {
  readonly answer: LinkState | LinkUnavailable | undefined
  readonly at: number
  readonly askedAt: number
}

const UNKNOWN_STATE: KnownState = { answer: undefined, at: 0, askedAt: 0 }

/** The link over HTTP inside pinned mTLS. */
export class HttpLink implements Link {
  readonly #binding: LinkBinding
  readonly #now: () => number
  readonly #onFailure: (failure: LinkFailure) => void
  readonly #origin: string
  #requestedSince: number | undefined
  /** Gathers what is asked in one moment into one call. */
  readonly sign: Link['sign']
  #state: KnownState | undefined

  /**
   * @param onFailure is told each time the daemon is found wanting, whoever asked
   * @param origin of the daemon, for bindings that do not know it
   */
  constructor(
    binding: LinkBinding,
    host: BatchDeps,
    onFailure: (failure: LinkFailure) => void = () => {},
    origin: string = ORIGIN,
  ) {
    this.#binding = binding
    this.#now = host.now
    this.#onFailure = onFailure
    this.#origin = origin
    this.sign = batchedSigning(
      host,
      (request) => this.#sign(request),
      SIGN_TIMEOUT_MS,
      () => this.#failure('unreachable'),
    )
  }

  /**
   * A crowd of requests that come at once asks one time: each question of its own would open a connection. Those
   * who wait look for themselves, because here a request had better not be woken by another one's doing.
   */
  async state(): Promise<LinkState> {
    while (!this.#isFresh() && this.#isRequesting()) await pause(POLL_INTERVAL_MS)
    const answer = this.#isFresh() ? this.#state?.answer : undefined
    if (answer === undefined) return this.freshState()
    if (answer instanceof LinkUnavailable) throw answer
    return answer
  }

  /** One question serves all who came before it was asked. A refusal serves those who came before its answer. */
  async stateReadAfter(time: number): Promise<LinkState> {
    for (;;) {
      const { answer, at, askedAt } = this.#state ?? UNKNOWN_STATE
      if (answer instanceof LinkUnavailable && at >= time) throw answer
      if (answer !== undefined && !(answer instanceof LinkUnavailable) && askedAt >= time) {
        return answer
      }
      if (!this.#isRequesting()) return this.freshState()
      await pause(POLL_INTERVAL_MS)
    }
  }

  async freshState(): Promise<LinkState> {
    const askedAt = this.#now()
    this.#requestedSince = askedAt
    try {
      return this.#keep(await this.#json(LINK_PATHS.state, linkStateSchema), askedAt)
    } catch (error) {
      if (error instanceof LinkUnavailable) this.#keep(error, askedAt)
      throw error
    } finally {
      this.#requestedSince = undefined
    }
  }

  #isFresh(): boolean {
    const age = this.#now() - (this.#state?.at ?? Number.NEGATIVE_INFINITY)
    return age >= 0 && age < STATE_MAX_AGE_MS
  }

  #isRequesting(): boolean {
    const since = this.#now() - (this.#requestedSince ?? Number.NEGATIVE_INFINITY)
    return since >= 0 && since < CALL_TIMEOUT_MS
  }

  /** A refusal is kept as well, so that a request does not wait for a frozen daemon twice. */
  #keep<Answer extends LinkState | LinkUnavailable>(answer: Answer, askedAt: number): Answer {
    this.#state = { answer, at: this.#now(), askedAt }
    return answer
  }

  config() {
    return this.#json(LINK_PATHS.config, linkConfigSchema)
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
    const response = await this.#call(`${LINK_PATHS.attestation}${query}`, {}, CAPTURE_TIMEOUT_MS)
    const body = await this.#text(response)
    if (response.ok) {
      this.#parse(body, envelopeFormSchema)
      return { ok: true, envelope: body }
    }
    return { ok: false, reason: response.status === 429 ? 'rate_limited' : 'unavailable' }
  }

  async trustBundle(): Promise<string> {
    const response = await this.#call(LINK_PATHS.trust)
    const body = await this.#text(response)
    if (!response.ok) throw this.#failure('refused')
    this.#parse(body, trustFormSchema)
    return body
  }

  unseal(document: string) {
    const post = { method: 'POST', body: document }
    return this.#json(LINK_PATHS.unseal, unsealAnswerSchema, post, CAPTURE_TIMEOUT_MS)
  }

  async providers() {
    return (await this.#json(LINK_PATHS.providers, providersSchema)).providers
  }

  evidence(sha256: string): Promise<Response> {
    return this.#call(`${LINK_PATHS.evidence}/${sha256}`)
  }

  async egress(provider: string, path: string, init: RequestInit): Promise<Response> {
    const url = `${this.#origin}${LINK_PATHS.egress}/${encodeURIComponent(provider)}${path}`
    try {
      return await this.#binding.fetch(url, init)
    } catch (cause) {
      if (init.signal?.aborted) throw cause
      throw this.#failure('unreachable', cause)
    }
  }

  async #json<T>(
    path: string,
    schema: z.ZodType<T>,
    init: RequestInit = {},
    timeoutMs = CALL_TIMEOUT_MS,
  ): Promise<T> {
    const response = await this.#call(path, init, timeoutMs)
    const body = await this.#text(response)
    if (!response.ok) throw this.#failure('refused')
    return this.#parse(body, schema)
  }

  #parse<T>(body: string, schema: z.ZodType<T>): T {
    try {
      return schema.parse(JSON.parse(body))
    } catch (cause) {
      throw this.#failure('malformed', cause)
    }
  }

  async #call(path: string, init: RequestInit = {}, timeoutMs = CALL_TIMEOUT_MS) {
    try {
      const signal = AbortSignal.timeout(timeoutMs)
      return await this.#binding.fetch(`${this.#origin}${path}`, { ...init, signal })
    } catch (cause) {
      throw this.#failure('unreachable', cause)
    }
  }

  async #text(response: Response): Promise<string> {
    try {
      return await response.text()
    } catch (cause) {
      throw this.#failure('broken_off', cause)
    }
  }

  #failure(failure: LinkFailure, cause?: unknown): LinkUnavailable {
    this.#onFailure(failure)
    return new LinkUnavailable(LINK_FAILURES[failure], { cause, failure })
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
