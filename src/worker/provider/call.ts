import { concatBytes, type Bytes } from '../../protocol/bytes.ts'
import { formatConstraints, unmetConstraint, type Constraints } from '../../protocol/constraints.ts'
import {
  EGRESS_ERROR_HEADER,
  EGRESS_EVIDENCE_HEADER,
  EGRESS_REQUIRE_HEADER,
} from '../../protocol/link.ts'
import type { Link } from '../link/link.ts'
import type { AttemptClock } from './attempt-clock.ts'
import { watchConnect, type ProbeConnect } from './connect-watch.ts'
import { AttemptFailure, type Failure } from './failure.ts'
import type { Provider, Route } from './route.ts'

/** One call of a provider's endpoint. */
export interface ProviderCall {
  readonly route: Route
  /** Below the provider's base URL, with a leading slash. */
  readonly path: string
  /** A stream is of known length and is sent once: the next attempt brings one of its own. */
  readonly body: Bytes | ReadableStream<Uint8Array>
  readonly contentType: string
  readonly accept: string
  readonly clock: AttemptClock
  readonly link: Link
  readonly now: () => number
  readonly connectMs: number
  readonly probeConnect: ProbeConnect
  /** What the provider must meet, judged again by the connection that carries the request. */
  readonly constraints: Constraints | undefined
  /** Tells what an answer other than 200 means for this endpoint. */
  readonly classify: (status: number, headers: Headers, body: Bytes, now: number) => Failure
}

/** A 200 whose body has not been read yet. */
export interface ProviderReply {
  readonly body: ReadableStream<Uint8Array>
  /** Whether the bytes are not those that were sent, but what was compressed into them. */
  readonly decoded: boolean
  /** Its Content-Length, where it has one and that is the length of `body`. */
  readonly declaredBytes: number | undefined
  /** The evidence that the connection was pinned to; null for a provider without attestation. */
  readonly evidenceSha256: string | null
}

/** As much of an error body as classification looks at. */
const ERROR_BODY_BYTES = 65_536

/** How long an error body may take: its status has told most already. */
const ERROR_BODY_MS = 2_000

/** Content codings that come although none was asked for; only the decoded bytes can be read. */
const DECODED_BY_THE_RUNTIME: ReadonlySet<string> = new Set(['gzip', 'x-gzip'])

/** What the daemon's refusals mean; any that is not listed came before a connection was even tried. */
const EGRESS_FAILURES: Readonly<Record<string, Failure>> = {
  provider_unproven: { kind: 'attestation_failed' },
  constraints_unmet: { kind: 'attestation_not_accepted' },
  provider_unreachable: { kind: 'unavailable', unanswered: true },
  provider_malformed: { kind: 'unclassified' },
  connect_timeout: { kind: 'timeout', unanswered: true },
}

/**
 * Calls a provider: directly where it has no attestation, else through the daemon's pinned egress.
 * @throws AttemptFailure with what the answer, or its absence, means
 * @throws LinkUnavailable when the pinned way needs a daemon that does not answer
 */
export async function callProvider(call: ProviderCall): Promise<ProviderReply> {
  const response = await send(call)
  // Of the daemon's headers only the daemon's own count: a provider called directly can send what it likes.
  const pinned = call.route.provider.adapter !== 'none'
  const refusal = pinned ? response.headers.get(EGRESS_ERROR_HEADER) : null
  if (refusal !== null) {
    await response.body?.cancel()
    throw new AttemptFailure(EGRESS_FAILURES[refusal] ?? { kind: 'unavailable' })
  }
  if (response.status !== 200) throw new AttemptFailure(await readFailure(response, call))
  const encoding = response.headers.get('content-encoding')?.trim().toLowerCase() ?? 'identity'
  const decoded = DECODED_BY_THE_RUNTIME.has(encoding)
  if ((encoding !== 'identity' && !decoded) || response.body === null) {
    await response.body?.cancel()
    throw new AttemptFailure({ kind: 'unclassified', status: response.status })
  }
  return {
    body: response.body,
    decoded,
    // The length is that of the encoded bytes, so it bounds nothing that is read here.
    declaredBytes: decoded ? undefined : lengthOf(response.headers),
    evidenceSha256: pinned ? response.headers.get(EGRESS_EVIDENCE_HEADER) : null,
  }
}

function lengthOf(headers: Headers): number | undefined {
  const declared = headers.get('content-length')
  return declared === null ? undefined : Number(declared)
}

async function send(call: ProviderCall): Promise<Response> {
  const { constraints } = call
  const { provider } = call.route
  const pinned = provider.adapter !== 'none'
  if (!pinned && constraints !== undefined) requireWithoutEvidence(constraints, provider)
  const init: RequestInit = {
    method: 'POST',
    headers: {
      ...(pinned && constraints && { [EGRESS_REQUIRE_HEADER]: formatConstraints(constraints) }),
      'content-type': call.contentType,
      accept: call.accept,
      'accept-encoding': 'identity',
      ...(provider.apiKey === undefined ? {} : { authorization: `Bearer ${provider.apiKey}` }),
    },
    body: call.body,
    redirect: 'manual',
    signal: call.clock.signal,
  }
  if (pinned) return call.link.egress(provider.name, call.path, init)
  const { baseUrl } = provider
  const endWatch = watchConnect(baseUrl, call.connectMs, call.clock, call.probeConnect)
  try {
    return await fetch(`${baseUrl}${call.path}`, init)
  } catch {
    throw lostConnection(call.clock, true)
  } finally {
    endWatch()
  }
}

/** No daemon stands between the worker and a provider without attestation, which meets only what needs no evidence. */
function requireWithoutEvidence(constraints: Constraints, { name }: Provider): void {
  const peer = { provider: name, strength: 'none', evidenceSha256: null }
  if (unmetConstraint(constraints, peer) === undefined) return
  throw new AttemptFailure({ kind: 'attestation_not_accepted' })
}

/** What a broken connection means: the reason of an abort if there was one, else an unavailable route. */
export function lostConnection(clock: AttemptClock, unanswered: boolean): unknown {
  if (clock.signal.aborted) return clock.signal.reason
  return new AttemptFailure({ kind: 'unavailable', unanswered })
}

async function readFailure(response: Response, call: ProviderCall): Promise<Failure> {
  call.clock.enter(ERROR_BODY_MS)
  const body = await readStart(response.body)
  return call.classify(response.status, response.headers, body, call.now())
}

/** The first bytes of a body that may be cut, endless or slow; what is missing is simply missing. */
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
    // A body that breaks off is classified by what arrived of it.
  }
  return concatBytes(...parts).slice(0, ERROR_BODY_BYTES)
}
