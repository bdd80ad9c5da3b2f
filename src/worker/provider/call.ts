import { concatBytes, type Bytes } from '../../protocol/bytes.ts'
import { formatConstraints, unmetConstraint, type Constraints } from '../../protocol/constraints.ts'
import {
  CHUNKS_WRITTEN,
  EGRESS_CHUNKS_HEADER,
  EGRESS_ERROR_HEADER,
  EGRESS_EVIDENCE_HEADER,
  EGRESS_REQUIRE_HEADER,
  EGRESS_UNATTESTED_HEADER,
} from '../../protocol/link.ts'
import {
  printStreamSpec,
  type ChunkAddress,
  type StreamSpec,
} from '../../protocol/stream-record.ts'
import type { WholeAnswerSpec, WholeAnswerRecord } from '../../protocol/whole-answer.ts'
import { declaredLength } from '../http/declared-length.ts'
import type { Link } from '../link/link.ts'
import type { AnswerHeaders, LinkAnswer } from '../link/link-answer.ts'
import type { LinkInit } from '../link/link-calls.ts'
import type { AttemptClock } from './attempt-clock.ts'
import { watchConnect, type ProbeConnect } from './connect-watch.ts'
import { AttemptFailure, SilentFailure, type Failure } from './failure.ts'
import type { Provider, Route } from './route.ts'

/** The specification of a stream that the daemon is asked to write, and the data that the daemon gets for it in front of the provider's request. */
export interface RequestedStream {
  readonly spec: StreamSpec
  readonly preamble?: Bytes | undefined
  /** Where the daemon sends the chunks, instead of in the answer to the call. */
  readonly to?: ChunkAddress | undefined
}

/** One call of a provider's endpoint. */
export interface ProviderCall {
  readonly route: Route
  /** Appended to the provider's base URL; begins with a slash. */
  readonly path: string
  /** A stream has a known length and is sent once; another attempt needs a new one. */
  readonly body: Bytes | ReadableStream<Uint8Array>
  readonly contentType: string
  readonly accept: string
  readonly clock: AttemptClock
  readonly link: Link
  readonly now: () => number
  readonly connectMs: number
  readonly probeConnect: ProbeConnect
  /** What the client requires of the provider; the daemon checks it again on the connection that carries the request. */
  readonly constraints: Constraints | undefined
  /** Lets the daemon write the chunks of the client's stream, where the daemon carries the call. */
  readonly requestedStream?: RequestedStream | undefined
  /** Lets the daemon write the client's whole answer, where the daemon carries the call. */
  readonly wholeAnswer?: WholeAnswerSpec | undefined
  /** Classifies an answer of this endpoint whose status is not 200. */
  readonly classify: (status: number, headers: AnswerHeaders, body: Bytes, now: number) => Failure
}

/** A 200 whose body has not been read yet. */
export interface ProviderReply {
  readonly response: LinkAnswer
  /**
   * Set where the daemon writes what the client receives. `written`: the body is that; `sent`: it is sent to the address in the
   * specification. Undefined: the body is the provider's.
   */
  readonly chunks: 'written' | 'sent' | undefined
  /**
   * The daemon's record of the answer, where it has written the client's whole answer; the body is then what the client
   * receives.
   */
  readonly whole: WholeAnswerRecord | undefined
  /** Whether the answer arrived compressed; the body is the decompressed content. */
  readonly decoded: boolean
  /** The answer's Content-Length, where it is certain to be the length of the body as read. */
  readonly declaredBytes: number | undefined
  /** The evidence that the connection was pinned to; null for a provider without attestation. */
  readonly evidenceSha256: string | null
}

/** Maximum bytes of an error body that are read for classification. */
const ERROR_BODY_BYTES = 65_536

/** Time limit for reading an error body, ms; the status alone tells most. */
const ERROR_BODY_MS = 2_000

/**
 * Content codings that some providers apply unasked; the runtime decodes them, and only the decoded bytes can be
 * read.
 */
const DECODED_BY_THE_RUNTIME: ReadonlySet<string> = new Set(['gzip', 'x-gzip'])

/** The failure for each error code of the daemon's egress. An unlisted code was raised before a connection was attempted. */
const EGRESS_FAILURES: Readonly<Record<string, Failure>> = {
  provider_unproven: { kind: 'attestation_failed' },
  constraints_unmet: { kind: 'attestation_not_accepted' },
  provider_unreachable: { kind: 'unavailable', unanswered: true },
  provider_malformed: { kind: 'unclassified' },
  connect_timeout: { kind: 'timeout', unanswered: true },
  exhausted: { kind: 'unavailable', unanswered: true, isOwn: true },
  // These two: the daemon has switched to another configuration.
  not_found: { kind: 'unavailable', unanswered: true, isOwn: true },
  invalid_request: { kind: 'unavailable', unanswered: true, isOwn: true },
}

/**
 * Calls a provider: through the daemon, or directly where the daemon carries only attested providers.
 * @throws AttemptFailure that classifies the answer, or its absence
 * @throws LinkUnavailable when the egress needs a daemon that does not answer, or answers in an unknown form
 */
export async function callProvider(call: ProviderCall): Promise<ProviderReply> {
  const { provider } = call.route
  const { adapter, isCarried } = provider
  if (adapter === 'none') requireWithoutEvidence(call.constraints, provider)
  const { response, whole } = isCarried
    ? await call.link.egress(provider.name, call.path, carriedInit(call))
    : { response: await callDirectly(call), whole: undefined }
  // The daemon's headers are read only from the daemon: a provider that is called directly could forge them.
  const refusal = isCarried ? response.headers.get(EGRESS_ERROR_HEADER) : null
  if (refusal !== null) {
    await response.body?.cancel()
    throw new AttemptFailure(EGRESS_FAILURES[refusal] ?? { kind: 'unavailable' })
  }
  if (response.status !== 200) throw new AttemptFailure(await readFailure(response, call))
  const encoding = response.headers.get('content-encoding')?.trim().toLowerCase() ?? 'identity'
  const decoded = DECODED_BY_THE_RUNTIME.has(encoding)
  if (encoding !== 'identity' && !decoded) {
    await response.body?.cancel()
    throw new AttemptFailure({ kind: 'unclassified', status: response.status })
  }
  return {
    response,
    chunks: isCarried ? chunksOf(response.headers) : undefined,
    whole,
    decoded,
    // Content-Length counts the encoded bytes, so it does not bound the decoded ones.
    declaredBytes: decoded ? undefined : declaredLength(response.headers),
    evidenceSha256: isCarried ? response.headers.get(EGRESS_EVIDENCE_HEADER) : null,
  }
}

function chunksOf(headers: AnswerHeaders): ProviderReply['chunks'] {
  const where = headers.get(EGRESS_CHUNKS_HEADER)
  if (where === null) return undefined
  return where === CHUNKS_WRITTEN.there ? 'sent' : 'written'
}

/**
 * The body of an answer, as a stream.
 * @throws AttemptFailure where there is none
 */
export function streamOf({ response }: Pick<ProviderReply, 'response'>): ReadableStream<Bytes> {
  const { body, status } = response
  if (body === null) throw new AttemptFailure({ kind: 'unclassified', status })
  return body
}

/** The init of a call through the daemon. */
function carriedInit(call: ProviderCall): LinkInit {
  const { constraints, requestedStream, wholeAnswer, body } = call
  const { adapter, baseUrl } = call.route.provider
  const { headers, ...init } = providerInit(call, call.clock.signal)
  return {
    ...init,
    headers: {
      ...(constraints && { [EGRESS_REQUIRE_HEADER]: formatConstraints(constraints) }),
      ...(requestedStream && { [EGRESS_CHUNKS_HEADER]: streamSpecHeader(requestedStream) }),
      ...(adapter === 'none' && { [EGRESS_UNATTESTED_HEADER]: baseUrl }),
      ...headers,
    },
    body: withPreamble(body, requestedStream?.preamble),
    whole: wholeAnswer,
    hasSmallAnswer: requestedStream?.to !== undefined,
  }
}

function streamSpecHeader({ spec, to }: RequestedStream): string {
  return printStreamSpec(to === undefined ? spec : { ...spec, to })
}

/** @param signal the attempt's signal, in the form that the call needs */
function providerInit<Signal>(call: ProviderCall, signal: Signal) {
  const { apiKey } = call.route.provider
  return {
    method: 'POST',
    headers: {
      'content-type': call.contentType,
      accept: call.accept,
      'accept-encoding': 'identity',
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
    },
    body: call.body,
    redirect: 'manual' as const,
    signal,
  }
}

function withPreamble(
  body: ProviderCall['body'],
  preamble: Bytes | undefined,
): ProviderCall['body'] {
  if (preamble === undefined) return body
  if (body instanceof ReadableStream)
    throw new Error('internal error: a streamed body cannot carry data for the daemon')
  return concatBytes(preamble, body)
}

async function callDirectly(call: ProviderCall): Promise<Response> {
  const { baseUrl } = call.route.provider
  const endWatch = watchConnect(baseUrl, call.connectMs, call.clock, call.probeConnect)
  try {
    const init = providerInit(call, call.clock.signal.ofPlatform())
    return await fetch(`${baseUrl}${call.path}`, init)
  } catch {
    throw lostConnection(call.clock, true)
  } finally {
    endWatch()
  }
}

/**
 * Refuses a provider without attestation, unless the constraints need no evidence.
 * @throws AttemptFailure `attestation_not_accepted`
 */
function requireWithoutEvidence(constraints: Constraints | undefined, { name }: Provider): void {
  if (constraints === undefined) return
  const peer = { provider: name, strength: 'none', evidenceSha256: null }
  if (unmetConstraint(constraints, peer) === undefined) return
  throw new AttemptFailure({ kind: 'attestation_not_accepted' })
}

/** The failure for a broken connection: the reason of an abort if there was one, else an unavailable route. */
export function lostConnection(clock: AttemptClock, unanswered: boolean): unknown {
  if (clock.signal.aborted) return clock.signal.reason
  return new SilentFailure({ kind: 'unavailable', unanswered })
}

async function readFailure(response: LinkAnswer, call: ProviderCall): Promise<Failure> {
  call.clock.enter(ERROR_BODY_MS)
  const body = await readStart(response.body)
  return call.classify(response.status, response.headers, body, call.now())
}

/** The first bytes of an error body, which may be cut off, endless or slow. Missing bytes are ignored. */
async function readStart(body: ReadableStream<Uint8Array> | null): Promise<Bytes> {
  if (body === null) return concatBytes()
  const parts: Uint8Array[] = []
  let length = 0
  const reader = body.getReader()
  try {
    while (length < ERROR_BODY_BYTES) {
      const { value, done } = await reader.read()
      if (done) break
      parts.push(value)
      length += value.length
    }
    await reader.cancel()
  } catch {
    // A body that is cut off is classified by the part that arrived.
  }
  return concatBytes(...parts).slice(0, ERROR_BODY_BYTES)
}
