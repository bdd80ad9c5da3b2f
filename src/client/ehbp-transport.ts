import type { Bytes } from '../protocol/bytes.ts'
import {
  ENCAPSULATED_KEY_HEADER,
  KEY_CONFIG_PATH,
  KEY_CONFIG_PROBLEM,
  RESPONSE_NONCE_HEADER,
} from '../protocol/ehbp.ts'
import { readKeyConfig } from '../protocol/hpke-key-config.ts'
import { staysPrivate } from '../protocol/loopback.ts'
import { openedBody } from './ehbp-answer-body.ts'
import { encryptRequest } from './ehbp-request.ts'
import { AnswerRefused, AttestationRefused, AttestationUnavailable, ClientError } from './errors.ts'
import { addressOf, type BundleState, type Settings } from './options.ts'
import { proveHost, type HostAnswer, type Proof } from './proof.ts'
import { Proofs } from './proofs.ts'
import { proveAgain, readRetryAfter } from './prove-again.ts'
import { readWithin } from './read-within.ts'
import { RouterTrustSource, type TrustSource } from './trust-source.ts'
import type { IncomingAnswer, OutgoingRequest, Transport } from './transport.ts'

function incoming({ body, headers, status, statusText }: Response): IncomingAnswer {
  return { body, headers, status, statusText }
}

/**
 * How many stale keys a request may meet: the key may be replaced between evidence and request, or a load balancer may
 * choose another host.
 */
const MAX_STALE_KEYS = 3

/** The key of the only entry in `Proofs`: the transport sees one host. */
const HOST = 'ehbp'

/** An envelope takes some tens of kilobytes, and the platform may take a minute to capture its report. */
const MAX_EVIDENCE_BYTES = 4 * 1024 * 1024
const EVIDENCE_TIMEOUT_MS = 70_000

/** Options of every request: no cookies, no cache, no redirects. */
const ISOLATED = { credentials: 'omit', cache: 'no-store', redirect: 'error' } as const

/**
 * Carries requests over the runtime's own `fetch`, with bodies encrypted to an HPKE key that the host's evidence names.
 * A party that terminates TLS in between sees headers and paths, but no body.
 */
export class EhbpTransport implements Transport {
  readonly #settings: Settings
  readonly #fetch: typeof fetch
  readonly #proofs: Proofs
  readonly #trust: TrustSource
  readonly #running = new Set<Promise<unknown>>()

  /** @throws ClientError when the address is plain HTTP, which would expose the API key */
  constructor(settings: Settings, state: BundleState) {
    const { base, deps } = settings
    if (!staysPrivate(base)) {
      throw new ClientError('invalid_options', 'baseURL: without TLS anybody can read the API key')
    }
    this.#settings = settings
    this.#fetch = deps.fetch ?? ((input, init) => globalThis.fetch(input, init))
    this.#proofs = new Proofs(deps.now)
    this.#trust = new RouterTrustSource(settings, state, (input) => this.#fetchEvidence(input))
  }

  async send(request: OutgoingRequest): Promise<IncomingAnswer> {
    const sending = this.#send(request)
    const entry = sending.catch(() => {}).finally(() => this.#running.delete(entry))
    this.#running.add(entry)
    return sending
  }

  proofs(): readonly Proof[] {
    return this.#proofs.current()
  }

  refresh(): void {
    this.#proofs.forget()
  }

  async close(): Promise<void> {
    await Promise.all(this.#running)
  }

  async #send(request: OutgoingRequest): Promise<IncomingAnswer> {
    for (let stale = 0; ; stale++) {
      const proof = await orAborted(this.#proven(), request.signal)
      const answer = await this.#sendTo(proof.hpkeKeyConfig, request)
      if (answer !== undefined) return answer
      if (stale >= MAX_STALE_KEYS) {
        throw new AttestationUnavailable('the router refuses the very key that it proves')
      }
      // Only this proof is dropped: other requests may have met the same key and be proving the host already, and one
      // report is enough for all of them.
      this.#proofs.drop(HOST, proof)
    }
  }

  /** Sends a request to the host. Undefined where the host has replaced its key and has not read the request. */
  async #sendTo(
    keyConfig: Bytes | undefined,
    { url, method, headers, body, signal }: OutgoingRequest,
  ): Promise<IncomingAnswer | undefined> {
    if (body === undefined || body.length === 0 || keyConfig === undefined) {
      return incoming(await this.#fetch(url, { ...ISOLATED, method, headers, signal }))
    }
    const encrypted = await encryptRequest(keyConfig, body)
    const sent = new Headers(headers)
    sent.delete('content-length')
    sent.set(ENCAPSULATED_KEY_HEADER, encrypted.enc)
    const init = { ...ISOLATED, method, headers: sent, body: encrypted.body, signal }
    const answer = await this.#fetch(url, init)
    const nonce = answer.headers.get(RESPONSE_NONCE_HEADER)
    if (nonce === null) return (await isStaleKey(answer)) ? undefined : unencrypted(answer)
    if (answer.body === null) throw new AnswerRefused('the answer was cut')
    const received = new Headers(answer.headers)
    received.delete(RESPONSE_NONCE_HEADER)
    const { status, statusText } = answer
    const cipher = await encrypted.answerCipher(nonce)
    return { status, statusText, headers: received, body: openedBody(answer.body, cipher, status) }
  }

  #proven(): Promise<Proof> {
    return this.#proofs.obtain(HOST, () => this.#prove())
  }

  #prove(): Promise<Proof> {
    const { pause } = this.#settings.deps
    return proveAgain(() => this.#tryProve(), { isTransient: wasReplaced, pause })
  }

  #tryProve(): Promise<Proof> {
    const seen = this.#keyConfig().then((hpkeKeyConfig) => ({ hpkeKeyConfig }))
    return proveHost((path) => this.#request(path), seen, this.#settings, this.#trust)
  }

  async #keyConfig(): Promise<Bytes> {
    const { body, status } = await this.#request(KEY_CONFIG_PATH)
    if (status !== 200) throw new AttestationUnavailable(`the router gives no HPKE key (${status})`)
    readKeyConfig(body)
    return body
  }

  /** With a time limit, because every request waits for the same evidence. */
  #fetchEvidence(input: RequestInfo | URL): Promise<Response> {
    const signal = AbortSignal.timeout(EVIDENCE_TIMEOUT_MS)
    return this.#fetch(input, { ...ISOLATED, signal })
  }

  async #request(path: string): Promise<HostAnswer> {
    const answer = await this.#fetchEvidence(addressOf(this.#settings, path))
    const body = await readWithin(answer.body, MAX_EVIDENCE_BYTES)
    return { status: answer.status, body, ...readRetryAfter(answer.headers.get('retry-after')) }
  }
}

/** Whether the host replaced its key between the requests for the evidence and for the key. */
function wasReplaced(error: unknown): boolean {
  return error instanceof AttestationRefused && error.failed.join() === 'hpke_key'
}

async function isStaleKey(answer: Response): Promise<boolean> {
  if (answer.status !== 422) return false
  const problem: unknown = await answer
    .clone()
    .json()
    .catch(() => undefined)
  return (
    typeof problem === 'object' &&
    problem !== null &&
    'type' in problem &&
    problem.type === KEY_CONFIG_PROBLEM
  )
}

/**
 * Turns an unencrypted error into an answer. Its status is as unreliable as a broken connection, and its text is not
 * used.
 * @throws AnswerRefused for an answer that claims success
 */
async function unencrypted({ body, headers, ok, status }: Response): Promise<IncomingAnswer> {
  await body?.cancel()
  if (ok) throw new AnswerRefused('the answer is not encrypted')
  const retryAfter = headers.get('retry-after')
  const error = {
    message: `Something before the enclave answered ${status}, or the enclave did not accept the encryption.`,
    type: 'server_error',
    code: 'unencrypted_answer',
    param: null,
  }
  const stated = retryAfter === null ? {} : { 'retry-after': retryAfter }
  return incoming(Response.json({ error }, { status, headers: stated }))
}

/** The result of the work, unless the signal aborts first; the work itself continues for other callers. */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  const stop = new AbortController()
  const aborted = new Promise<never>((_resolve, reject) => {
    const abort = () =>
      reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'))
    signal.addEventListener('abort', abort, { once: true, signal: stop.signal })
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    stop.abort()
  }
}
