import { sha256Hex } from '../../protocol/digest.ts'
import type { ChunkOrder } from '../../protocol/stream-record.ts'
import { callDeps } from '../context.ts'
import { AttemptClock } from '../provider/attempt-clock.ts'
import { callProvider, streamOf } from '../provider/call.ts'
import { buildChatBody } from '../provider/chat-body.ts'
import { classifyResponse } from '../provider/failure.ts'
import type { AttemptFn } from '../routing/attempt.ts'
import type { Budget } from '../routing/budget.ts'
import type { AnswerHead } from '../stream/answer-head.ts'
import { AnswerStream } from '../stream/answer-stream.ts'
import type { AdmittedChat } from './admitted.ts'
import { toAttemptFailure } from '../provider/attempt-failure.ts'
import { answerHead } from './answer-head.ts'
import type { AcceptedAttempt, CommittedStream, OpenStream } from './open-stream.ts'
import { readToCommit } from './read-stream.ts'
import { WrittenStream } from './written-stream.ts'

/**
 * The streaming attempt of a request on one route, up to the commit point. Opening frames are held back, so a failure
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
      const order = admitted.format.chunksByDaemon ? chunkOrder(admitted, head) : undefined
      const reply = await callProvider({
        route,
        path: '/chat/completions',
        body,
        contentType: 'application/json',
        accept: 'text/event-stream',
        clock,
        constraints: admitted.constraints,
        chunkOrder: order,
        ...callDeps(context),
        classify: classifyResponse,
      })
      clock.enter(timeouts.first_delta_ms)
      const encoder = admitted.format.streamEncoder(head)
      const commit = async (): Promise<CommittedStream> => {
        if (order !== undefined && reply.chunksWritten) {
          const { link } = context
          const written = new WrittenStream(order, streamOf(reply), {
            link,
            clock,
            budget: budget.signal,
            encoder,
          })
          onAccepted({ attempt, produced: () => written.produced() })
          await written.reachCommit()
          return written
        }
        const { includeReasoning } = chat
        const { takeMemory } = context
        const stream = new AnswerStream({ id: head.id, includeReasoning, takeMemory }, encoder)
        onAccepted({ attempt, produced: async () => stream })
        return readToCommit(streamOf(reply), stream, clock, timeouts.idle_ms)
      }
      const source = await commit()
      const { evidenceSha256, decoded } = reply
      const requestDigest = await sha256Hex(body)
      return { attempt, encoder, source, requestDigest, evidenceSha256, decoded }
    } catch (error) {
      const reason = toAttemptFailure(error)
      clock.abort(reason)
      // A request that was aborted by its client is still billed for what the provider has produced.
      if (!budget.signal.aborted) onAccepted(undefined)
      throw reason
    }
  }
}

/** Beyond the time that a stream may last, ms. */
const RECORD_SLACK_MS = 60_000

/** The longest time that timers take, ms. */
const MAX_TIMER_MS = 2_147_483_647

/** What the daemon needs to write the chunks of this answer. */
function chunkOrder({ context, chat }: AdmittedChat, head: AnswerHead): ChunkOrder {
  const { idle_ms, keep_alive_ms, stream_ms } = context.config.service.timeouts
  const { id, created, model } = head
  return {
    stream: context.newId(),
    head: { id, created, model },
    include_reasoning: chat.includeReasoning,
    idle_ms,
    keep_alive_ms,
    // A client may take as long for an answer as a stream may last.
    record_ms: Math.min(stream_ms + RECORD_SLACK_MS, MAX_TIMER_MS),
  }
}
