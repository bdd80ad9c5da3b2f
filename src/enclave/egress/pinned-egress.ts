import { concatBytes, type Bytes } from '../../protocol/bytes.ts'
import { parseConstraints, unmetConstraint, type Constraints } from '../../protocol/constraints.ts'
import {
  EGRESS_CHUNKS_HEADER,
  EGRESS_ERROR_HEADER,
  EGRESS_REQUIRE_HEADER,
} from '../../protocol/link.ts'
import { parseChunkOrder, type ChunkOrder } from '../../protocol/stream-record.ts'
import type { Egress, EgressRequest, EgressCall } from '../open-egress.ts'
import { LinkError } from '../link-error.ts'
import type { Log } from '../log.ts'
import type { ProviderChannel, ProviderProofs } from '../proofs.ts'
import { finalAnswer } from '../outbound/final-answer.ts'
import type { ChunkJoiner } from './chunk-joiner.ts'
import { requestHeaders } from './headers.ts'
import { openPinned, unproven, type OpenRequest, type PinnedDeps } from './open-pinned.ts'
import { createPools } from './pools.ts'
import { relay } from './relay.ts'
import { WrittenStreams } from './written-streams.ts'

export interface EgressDeps {
  readonly proofs: ProviderProofs
  /** Timeout of TCP and TLS together. */
  readonly connectMs: () => number
  /** Joins chunks of event streams. */
  readonly joiner: ChunkJoiner
  /** Ms. */
  readonly now: () => number
  readonly log: Log
}

interface CarryDeps extends PinnedDeps, Pick<EgressDeps, 'joiner' | 'now' | 'log'> {
  readonly written: WrittenStreams
}

/** Egress over connections whose live key is the one that verified evidence binds. */
export function createPinnedEgress({ connectMs, ...given }: EgressDeps): Egress {
  const deps = { ...given, pools: createPools(connectMs), written: new WrittenStreams() }
  return {
    async carry(call) {
      try {
        await carry(call, deps)
      } catch (error) {
        const code = error instanceof LinkError ? error.code : 'internal'
        if (!call.response.headersSent) call.response.setHeader(EGRESS_ERROR_HEADER, code)
        throw error
      }
    },
    endStream: (stream) => deps.written.end(stream),
    get: (provider, request) => get(provider, request, deps),
    close: () => deps.pools.close(),
  }
}

/**
 * Look up the proof -> connect to the proven key -> check the caller's constraints -> relay request and answer. The
 * body is not read before the last step.
 */
async function carry(call: EgressCall, deps: CarryDeps): Promise<void> {
  const { provider, path, request, response } = call
  const constraints = readConstraints(request.headers[EGRESS_REQUIRE_HEADER])
  const order = readOrder(request.headers[EGRESS_CHUNKS_HEADER])
  const channel = requireChannel(provider, deps.proofs)
  const gone = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) gone.abort()
  })
  const outgoing = {
    method: request.method ?? 'GET',
    path,
    headers: requestHeaders(request.headers),
    signal: gone.signal,
  }
  const open = await openPinned(channel, outgoing, deps)
  if (constraints !== undefined) requireConstraints(constraints, open)
  const evidenceSha256 = open.channel.evidence.evidence_digest
  await relay({ request, response, sent: open.sent, evidenceSha256, order, ...deps })
}

/** @throws LinkError for a malformed header */
function readOrder(header: string | string[] | undefined): ChunkOrder | undefined {
  if (header === undefined) return undefined
  const order = parseChunkOrder(String(header))
  if (order !== undefined) return order
  throw new LinkError('invalid_request', 'the order for chunks is malformed')
}

/** @throws LinkError for a malformed header: the caller's constraints must not be dropped */
function readConstraints(header: string | string[] | undefined): Constraints | undefined {
  if (header === undefined) return undefined
  const constraints = parseConstraints(String(header))
  if (constraints !== undefined) return constraints
  throw new LinkError('invalid_request', 'the constraints are malformed')
}

/**
 * Checks the constraints against the evidence of this connection, on which nothing has been sent; it is closed if one
 * is not met.
 */
function requireConstraints(constraints: Constraints, { channel, sent }: OpenRequest): void {
  const { provider, evidence } = channel
  const { attestation_strength: strength, evidence_digest: evidenceSha256 } = evidence
  const unmet = unmetConstraint(constraints, { provider, strength, evidenceSha256 })
  if (unmet === undefined) return
  sent.destroy()
  throw new LinkError('constraints_unmet', `the provider does not meet \`${unmet}\``)
}

function requireChannel(provider: string, proofs: ProviderProofs): ProviderChannel {
  const channel = proofs.channel(provider)
  if (channel !== undefined) return channel
  const proof = proofs.list().find((candidate) => candidate.provider === provider)
  if (proof === undefined) throw new LinkError('not_found', 'no provider of that name')
  if (proof.state === 'unattested') {
    throw new LinkError('invalid_request', 'this provider is called without the daemon')
  }
  throw unproven()
}

async function get(
  provider: string,
  { path, maxBytes, signal }: EgressRequest,
  deps: PinnedDeps,
): ReturnType<Egress['get']> {
  const channel = deps.proofs.channel(provider)
  if (channel === undefined) return undefined
  const { apiKey } = channel
  const headers = {
    accept: 'application/json',
    'accept-encoding': 'identity',
    ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
  }
  try {
    const open = await openPinned(channel, { method: 'GET', path, headers, signal }, deps)
    return await readSmall(open, maxBytes)
  } catch {
    return undefined
  }
}

async function readSmall(
  { sent }: OpenRequest,
  maxBytes: number,
): Promise<{ status: number; body: Bytes }> {
  const answered = finalAnswer(sent)
  sent.end()
  const answer = await answered
  const parts: Uint8Array[] = []
  let size = 0
  try {
    for await (const part of answer as AsyncIterable<Uint8Array>) {
      size += part.length
      if (size > maxBytes) throw new Error('the answer is too large')
      parts.push(part)
    }
  } catch (error) {
    sent.destroy()
    throw error
  }
  return { status: answer.statusCode ?? 0, body: concatBytes(...parts) }
}
