import { sha256Hex } from '../../protocol/digest.ts'
import { after } from '../batching/deadline-timer.ts'
import { callDeps } from '../context.ts'
import { AttemptClock } from '../provider/attempt-clock.ts'
import {
  callProvider,
  streamOf,
  type RequestedStream,
  type ProviderReply,
} from '../provider/call.ts'
import { buildChatBody } from '../provider/chat-body.ts'
import { classifyResponse } from '../provider/failure.ts'
import { isCarried, type Route } from '../provider/route.ts'
import type { StreamSpec } from '../../protocol/stream-record.ts'
import type { AttemptFn } from '../routing/attempt.ts'
import type { PlannedAttempt } from '../routing/plan.ts'
import type { Budget } from '../routing/budget.ts'
import type { AnswerHead } from '../stream/answer-head.ts'
import { AnswerStream } from '../stream/answer-stream.ts'
import { billingLimits } from '../stream/billing-limits.ts'
import { billingBound, type AdmittedChat } from './admitted.ts'
import { toAttemptFailure } from '../provider/attempt-failure.ts'
import { answerHead } from './answer-head.ts'
import { AnsweredChunks } from './answered-chunks.ts'
import type { ChunkSource } from './chunk-source.ts'
import type { LastEvents } from './format.ts'
import type { AcceptedAttempt, CommittedStream, OpenStream } from './open-stream.ts'
import { readToCommit } from './read-stream.ts'
import { ChunkStreamSource } from './chunk-stream-source.ts'
import { WrittenStream } from './written-stream.ts'

/**
 * Makes the streaming attempt of a request on one route, up to the commit point. Opening frames are held back, so a failure
 * here is invisible to the client.
 * @param onAccepted called once the provider has accepted the prompt, and with undefined when it fails after that
 * @returns a function that throws AttemptFailure
 */
export function streamAttempt(
  admitted: AdmittedChat,
  budget: Budget,
  onAccepted: (accepted: AcceptedAttempt | undefined) => void,
): AttemptFn<OpenStream> {
  const { context, chat } = admitted
  const { timeouts } = context.config.service
  return async (attempt) => {
    const clock = new AttemptClock(budget, context.now, context.after)
    try {
      clock.enter(timeouts.headers_ms)
      const { route } = attempt
      const body = buildChatBody(chat, route, attempt.effort, admitted.cacheSalt)
      const head = answerHead(admitted, route.id)
      const requested = isCarried(route) ? requestedStream(admitted, route, head) : undefined
      const chunkStream = requested && context.openChunkStream()
      const sent = chunkStream && new ChunkStreamSource(chunkStream, clock.signal)
      const reply = await callProvider({
        route,
        path: '/chat/completions',
        body,
        contentType: 'application/json',
        accept: 'text/event-stream',
        clock,
        constraints: admitted.constraints,
        requestedStream: requested && { ...requested, to: chunkStream?.address },
        ...callDeps(context),
        classify: classifyResponse,
      })
      clock.enter(timeouts.first_delta_ms)
      // Hashed while the provider works, so that no delta waits for it.
      const requestDigest = await sha256Hex(body)
      const last = admitted.format.lastEvents(head)
      const written = chunkSource(reply, sent)
      const reading = { attempt, clock, head, last, onAccepted }
      const source =
        requested !== undefined && written !== undefined
          ? await writtenToCommit(admitted, requested.spec, written, budget, reading)
          : await readHere(admitted, reply, reading)
      await admitted.daemonAlive
      const { evidenceSha256, decoded } = reply
      return { attempt, source, requestDigest, evidenceSha256, decoded }
    } catch (error) {
      const reason = toAttemptFailure(error)
      clock.abort(reason)
      // An attempt that the client's disconnect aborted is still billed for what the provider has produced.
      if (!budget.signal.aborted) onAccepted(undefined)
      throw reason
    }
  }
}

/** What reading up to the commit point needs from the attempt. */
interface Reading {
  readonly attempt: PlannedAttempt
  readonly clock: AttemptClock
  readonly head: AnswerHead
  readonly last: LastEvents
  readonly onAccepted: (accepted: AcceptedAttempt) => void
}

/** Waits for the commit point of a stream whose chunks the daemon writes. */
async function writtenToCommit(
  { context: { link } }: AdmittedChat,
  spec: StreamSpec,
  source: ChunkSource,
  budget: Budget,
  { attempt, clock, last, onAccepted }: Reading,
): Promise<CommittedStream> {
  const written = new WrittenStream(spec, source, { link, clock, budget: budget.signal, last })
  onAccepted({ attempt, produced: () => written.produced() })
  await written.reachCommit()
  return written
}

/** Reads a stream up to its commit point, in this program. */
function readHere(
  admitted: AdmittedChat,
  reply: ProviderReply,
  { attempt, clock, head, last, onAccepted }: Reading,
): Promise<CommittedStream> {
  const { context } = admitted
  const { idle_ms: idleMs } = context.config.service.timeouts
  const stream = answerStream(admitted, head, last)
  onAccepted({ attempt, produced: async () => stream })
  return readToCommit(streamOf(reply), stream, clock, {
    idleMs,
    last,
    window: context.joinWindow,
    after,
  })
}

/** The source of the chunks that the daemon writes; undefined where the reply is the provider's own stream. */
function chunkSource(
  reply: ProviderReply,
  sent: ChunkStreamSource | undefined,
): ChunkSource | undefined {
  if (reply.chunks === 'sent') return sent
  sent?.leave()
  return reply.chunks === 'written' ? new AnsweredChunks(streamOf(reply)) : undefined
}

/** Decodes and encodes a stream in this program. */
function answerStream(
  { context, chat, format }: AdmittedChat,
  head: AnswerHead,
  last: LastEvents,
): AnswerStream {
  const { includeReasoning } = chat
  const { takeMemory } = context
  const reading = { id: head.id, includeReasoning, takeMemory }
  return new AnswerStream(reading, format.chunkWriter(head, takeMemory), last)
}

/** How much longer than a stream may last the daemon keeps the stream's record, ms. */
const RECORD_SLACK_MS = 60_000

/** The longest delay of a timer, ms. */
const MAX_TIMER_MS = 2_147_483_647

/** What lets the daemon write the chunks of this answer; undefined where it cannot. */
function requestedStream(
  admitted: AdmittedChat,
  route: Route,
  head: AnswerHead,
): RequestedStream | undefined {
  const { context, chat, format } = admitted
  const requested = format.chunkFormat(head)
  if (requested === undefined) return undefined
  const { idle_ms, keep_alive_ms, stream_ms } = context.config.service.timeouts
  const { id, created, model } = head
  return {
    spec: {
      stream: context.newId(),
      owner: admitted.admission.customerId,
      head: { id, created, model },
      format: requested.format,
      include_reasoning: chat.includeReasoning,
      billing: billingLimits(billingBound(admitted, route)),
      idle_ms,
      keep_alive_ms,
      // A client may take as long to read an answer as a stream may last.
      record_ms: Math.min(stream_ms + RECORD_SLACK_MS, MAX_TIMER_MS),
    },
    preamble: requested.preamble,
  }
}
