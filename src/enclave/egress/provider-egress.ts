import type { ServerResponse } from 'node:http'
import { parseConstraints, unmetConstraint, type Constraints } from '../../protocol/constraints.ts'
import {
  EGRESS_CHUNKS_HEADER,
  EGRESS_ERROR_HEADER,
  EGRESS_REQUIRE_HEADER,
  EGRESS_UNATTESTED_HEADER,
} from '../../protocol/link.ts'
import { parseStreamSpec, type StreamSpec } from '../../protocol/stream-record.ts'
import { wholeAnswerSpecSchema, type WholeAnswerSpec } from '../../protocol/whole-answer.ts'
import type { Egress, EgressCall, EgressRequest, MessageEgressCall } from '../open-egress.ts'
import { LinkError } from '../link-error.ts'
import type { Log } from '../log.ts'
import type { ProvenProviders, UnattestedProvider } from '../proofs.ts'
import { ChunkConnections } from './chunk-connections.ts'
import type { ChunkJoiner } from './chunk-joiner.ts'
import { EventMemory } from './event-memory.ts'
import type { Channel, OpenConnection } from './open-connection.ts'
import { openPinned, unproven, type PinnedDeps } from './open-pinned.ts'
import { openUnattested } from './open-unattested.ts'
import { preambleBytes, requestedStream, type RequestedStream } from './requested-stream.ts'
import type { WriteWholeAnswer } from './whole-answer-call.ts'
import { createPools } from './pools.ts'
import { relay, passOnBytes } from './relay.ts'
import { relayMessage, type MessageRelayParts } from './relay-message.ts'
import { bodyOf } from './request-body.ts'
import { getDocument } from './small-document.ts'
import { WaitingAnswers } from './waiting-answers.ts'
import { canWrite, sendChunks, type ChunkWriting } from './write-chunks.ts'
import { WrittenStreams } from './written-streams.ts'

export interface EgressDeps {
  readonly proofs: PinnedDeps['proofs']
  /** Timeout of TCP and TLS together. */
  readonly connectMs: () => number
  /** Joins chunks of event streams. */
  readonly joiner: ChunkJoiner
  /**
   * Memory for the events of streams whose chunks are written here, and for small answers; the default is not shared
   * with other threads.
   */
  readonly memory?: EventMemory
  /** How many streams whose chunks are written here may be open, or wait for their worker to fetch the record. */
  readonly maxStreams: number
  /** Ms. */
  readonly now: () => number
  /**
   * Writes complete client answers that workers request; without it the workers write them from the provider's answer.
   */
  readonly writeWholeAnswer?: WriteWholeAnswer
  /** The id of this thread; absent where workers only ever call one thread. */
  readonly thread?: string
  readonly log: Log
}

interface CarryDeps
  extends PinnedDeps, Pick<EgressDeps, 'joiner' | 'writeWholeAnswer' | 'now' | 'log'> {
  readonly written: WrittenStreams
  readonly memory: EventMemory
  readonly waiting: WaitingAnswers
  readonly chunks: ChunkConnections
}

/**
 * Egress over connections whose live key is the one that verified evidence binds, and to providers that are configured
 * without attestation.
 */
export function createProviderEgress({ connectMs, maxStreams, ...given }: EgressDeps): Egress {
  const onFull = () => given.log('streams_left_to_workers', { reason: fullReason(maxStreams) })
  const deps = {
    memory: new EventMemory(),
    ...given,
    pools: createPools(connectMs, given.now),
    written: new WrittenStreams(maxStreams, onFull),
    waiting: new WaitingAnswers(given.thread ?? 'alone'),
    chunks: new ChunkConnections(),
  }
  return {
    async carry(call) {
      try {
        await carry(call, deps)
      } catch (error) {
        nameRefusal(call.response, error)
        throw error
      }
    },
    carryMessage: (call) => carryMessage(call, deps),
    sendWaiting(id, response) {
      try {
        sendWaiting(id, response, deps)
      } catch (error) {
        nameRefusal(response, error)
        throw error
      }
    },
    sendChunks: (id, socket) => deps.chunks.accept(id, socket),
    endStream: (stream) => deps.written.end(stream),
    get: (provider, request) => get(provider, request, deps),
    close() {
      deps.chunks.close()
      deps.waiting.close()
      deps.pools.close()
    },
  }
}

function fullReason(maxStreams: number): string {
  return `${maxStreams} streams are open or not settled by their workers`
}

/** Marks a refusal as the daemon's own, so that it cannot be taken for an answer of the provider. */
function nameRefusal(response: ServerResponse, error: unknown): void {
  const code = error instanceof LinkError ? error.code : 'internal'
  if (!response.headersSent) response.setHeader(EGRESS_ERROR_HEADER, code)
}

/**
 * Looks up the proof, connects to the proven key, checks the caller's constraints, and relays request and answer.
 * Nothing is sent before the last step. For a provider without attestation, the first two steps are to look up its
 * address and to connect to it.
 */
async function carry(call: EgressCall, deps: CarryDeps): Promise<void> {
  const { provider, path, request, response } = call
  const constraints = readConstraints(request.headers[EGRESS_REQUIRE_HEADER])
  const spec = readStreamSpec(request.headers[EGRESS_CHUNKS_HEADER])
  const channel = requireChannel(provider, request.headers[EGRESS_UNATTESTED_HEADER], deps.proofs)
  const body = await bodyOf(request, preambleBytes(spec?.format))
  try {
    const requested = spec && requestedStream(spec, body.preamble)
    const open = await openTo(channel, deps)
    if (response.closed) return open.pool.release(open.connection)
    if (constraints !== undefined) requireConstraints(constraints, open)
    await relay({ request, response, body, path, open, requested, ...deps })
  } catch (error) {
    body.discard()
    throw error
  }
}

function sendWaiting(id: string, response: ServerResponse, deps: CarryDeps): void {
  const { answer, open } = deps.waiting.take(id)
  try {
    passOnBytes(answer, { response, open, ...deps })
  } catch (error) {
    answer.destroy()
    throw error
  }
  answer.release()
}

/** Like `carry`, for a call that came as a message, with its small body complete. */
async function carryMessage(call: MessageEgressCall, deps: CarryDeps): Promise<void> {
  const { provider, headers, whole, caller } = call
  const constraints = readConstraints(headers[EGRESS_REQUIRE_HEADER])
  const spec = readWholeAnswerSpec(whole)
  const streamSpec = readStreamSpec(headers[EGRESS_CHUNKS_HEADER])
  const { preamble, body } = withoutPreamble(call.body, preambleBytes(streamSpec?.format))
  const requested = streamSpec && requestedStream(streamSpec, preamble)
  const channel = requireChannel(provider, headers[EGRESS_UNATTESTED_HEADER], deps.proofs)
  const open = await openTo(channel, deps)
  if (caller.hasDisconnected) return open.pool.release(open.connection)
  if (constraints !== undefined) requireConstraints(constraints, open)
  const { waiting, memory } = deps
  const writeWholeAnswer = spec && wholeWriter(spec, call, open, deps)
  const writing = {
    writeWholeAnswer,
    sendChunks: requested && chunkSender(requested, { open, ...deps }),
  }
  await relayMessage({ ...call, body, open, waiting, memory, ...writing })
}

/** @throws LinkError when the body is shorter than the part that must precede the request */
function withoutPreamble(
  bytes: Uint8Array,
  length: number,
): Record<'preamble' | 'body', Uint8Array> {
  if (length <= bytes.length) {
    return { preamble: bytes.subarray(0, length), body: bytes.subarray(length) }
  }
  throw new LinkError('invalid_request', 'the preamble of the request is malformed')
}

/**
 * The function that sends the chunks of this call's answer. It returns false where it cannot, for lack of a chunk
 * connection for example; the worker then writes the chunks itself.
 */
function chunkSender(
  requested: RequestedStream,
  deps: ChunkWriting & Pick<CarryDeps, 'chunks'>,
): MessageRelayParts['sendChunks'] {
  return (answer) => {
    const { to } = requested.spec
    if (to === undefined || !canWrite(answer, deps.written)) return false
    const chunks = deps.chunks.open(to)
    if (chunks !== undefined) sendChunks(requested, answer, chunks, deps)
    return chunks !== undefined
  }
}

/** The function that writes the client's answer to this call; undefined without `EgressDeps.writeWholeAnswer`. */
function wholeWriter(
  spec: WholeAnswerSpec,
  { provider, body: request }: MessageEgressCall,
  { channel }: OpenConnection,
  { writeWholeAnswer }: CarryDeps,
): MessageRelayParts['writeWholeAnswer'] {
  const evidenceSha256 = channel.evidence?.evidence_digest ?? null
  const call = { spec, provider, evidenceSha256, request }
  return writeWholeAnswer && ((answer, awaits) => writeWholeAnswer(call, answer, awaits))
}

/** @throws LinkError for a malformed specification */
function readWholeAnswerSpec(whole: unknown): WholeAnswerSpec | undefined {
  if (whole === undefined) return undefined
  const spec = wholeAnswerSpecSchema.safeParse(whole)
  if (spec.success) return spec.data
  throw new LinkError('invalid_request', 'the specification of the whole answer is malformed')
}

/** @throws LinkError for a malformed header */
function readStreamSpec(header: string | string[] | undefined): StreamSpec | undefined {
  if (header === undefined) return undefined
  const spec = parseStreamSpec(String(header))
  if (spec !== undefined) return spec
  throw new LinkError('invalid_request', 'the specification of the stream is malformed')
}

/** @throws LinkError for a malformed header: the caller's constraints must not be dropped */
function readConstraints(header: string | string[] | undefined): Constraints | undefined {
  if (header === undefined) return undefined
  const constraints = parseConstraints(String(header))
  if (constraints !== undefined) return constraints
  throw new LinkError('invalid_request', 'the constraints are malformed')
}

/** Checks the constraints against the evidence of this connection, on which nothing has been sent. */
function requireConstraints(
  constraints: Constraints,
  { channel, connection, pool }: OpenConnection,
): void {
  const { provider, evidence } = channel
  const strength = evidence?.attestation_strength ?? 'none'
  const evidenceSha256 = evidence?.evidence_digest ?? null
  const unmet = unmetConstraint(constraints, { provider, strength, evidenceSha256 })
  if (unmet === undefined) return
  pool.release(connection)
  throw new LinkError('constraints_unmet', `the provider does not meet \`${unmet}\``)
}

/**
 * The peer that a call may reach.
 * @param unattested the address that the caller names for a provider without attestation
 * @throws LinkError when the provider has no proof, and is not the provider without attestation that the caller names
 */
function requireChannel(
  provider: string,
  unattested: string | string[] | undefined,
  proofs: Omit<ProvenProviders, 'hop'>,
): Channel {
  if (unattested !== undefined) return requireUnattested(provider, String(unattested), proofs)
  const channel = proofs.channel(provider)
  if (channel !== undefined) return channel
  const proof = proofs.list().find((candidate) => candidate.provider === provider)
  if (proof === undefined) throw new LinkError('not_found', 'no provider of that name')
  if (proof.adapter === 'none') {
    throw new LinkError('invalid_request', 'this provider has no attestation')
  }
  throw unproven()
}

function requireUnattested(
  provider: string,
  baseUrl: string,
  proofs: Pick<ProvenProviders, 'unattested'>,
): UnattestedProvider {
  const known = proofs.unattested(provider, baseUrl)
  if (known !== undefined) return known
  throw new LinkError('not_found', 'no provider of that name and address without attestation')
}

async function openTo(channel: Channel, deps: PinnedDeps): Promise<OpenConnection> {
  return channel.evidence === null ? openUnattested(channel, deps) : openPinned(channel, deps)
}

async function get(
  provider: string,
  request: EgressRequest,
  deps: PinnedDeps,
): ReturnType<Egress['get']> {
  const channel = deps.proofs.channel(provider)
  if (channel === undefined) return undefined
  try {
    return await getDocument(await openPinned(channel, deps), request)
  } catch {
    return undefined
  }
}
