import { concatBytes, type Bytes } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { callDeps } from '../context.ts'
import { AttemptClock } from '../provider/attempt-clock.ts'
import { callProvider, lostConnection } from '../provider/call.ts'
import { buildChatBody } from '../provider/chat-body.ts'
import { AttemptFailure, classifyResponse } from '../provider/failure.ts'
import type { AttemptFn } from '../routing/attempt.ts'
import type { PlannedAttempt } from '../routing/plan.ts'
import { AnswerStream } from '../stream/answer-stream.ts'
import { createDigest, type Digest } from '../stream/digest.ts'
import type { AdmittedChat } from './admitted.ts'
import { toAttemptFailure } from '../provider/attempt-failure.ts'
import { answerHead } from './answer-head.ts'
import type { AnswerEncoder } from './format.ts'

/** A provider's stream that has reached the commit point: its first delta with content, or its finish. */
export interface OpenStream {
  readonly attempt: PlannedAttempt
  readonly clock: AttemptClock
  readonly reader: ReadableStreamDefaultReader<Uint8Array>
  readonly stream: AnswerStream
  readonly encoder: AnswerEncoder
  /** The opening events held back until the commit point, ready for the client. */
  readonly head: Bytes
  /** Whether the provider's body has already ended. */
  readonly ended: boolean
  readonly requestDigest: string
  readonly responseDigest: Digest
  readonly evidenceSha256: string | null
  /** Whether the answer arrived compressed; its digest then covers the decompressed bytes. */
  readonly decoded: boolean
}

/** An attempt whose provider has accepted the prompt, and its stream. */
export interface AcceptedAttempt {
  readonly attempt: PlannedAttempt
  readonly stream: AnswerStream
}

/**
 * The streaming attempt of a request on one route, up to the commit point. Opening frames are held back, so a failure
 * here is invisible to the client.
 * @param onAccepted called once the provider has accepted the prompt, and with undefined when it fails after that
 * @returns a function that throws AttemptFailure
 */
export function streamAttempt(
  admitted: AdmittedChat,
  budget: AbortSignal,
  onAccepted: (accepted: AcceptedAttempt | undefined) => void,
): AttemptFn<OpenStream> {
  const { context, chat } = admitted
  const { timeouts } = context.config.service
  return async (attempt) => {
    const clock = new AttemptClock(budget, context.now)
    try {
      clock.enter(timeouts.headers_ms)
      const body = buildChatBody(chat, attempt.route, attempt.effort, admitted.cacheSalt)
      const reply = await callProvider({
        route: attempt.route,
        path: '/chat/completions',
        body,
        contentType: 'application/json',
        accept: 'text/event-stream',
        clock,
        constraints: admitted.constraints,
        ...callDeps(context),
        classify: classifyResponse,
      })
      clock.enter(timeouts.first_delta_ms)
      const head = answerHead(admitted, attempt.route.id)
      const encoder = admitted.format.streamEncoder(head)
      const { includeReasoning } = chat
      const stream = new AnswerStream({ id: head.id, includeReasoning }, encoder)
      onAccepted({ attempt, stream })
      const responseDigest = createDigest()
      const reader = reply.body.getReader()
      const opening = await readToCommit(reader, stream, responseDigest, clock)
      clock.enter(timeouts.idle_ms)
      const { evidenceSha256, decoded } = reply
      const requestDigest = await sha256Hex(body)
      return {
        attempt,
        clock,
        reader,
        stream,
        encoder,
        ...opening,
        requestDigest,
        responseDigest,
        evidenceSha256,
        decoded,
      }
    } catch (error) {
      const reason = toAttemptFailure(error)
      clock.abort(reason)
      // A request that was aborted by its client is still billed for what the provider has produced.
      if (!budget.aborted) onAccepted(undefined)
      throw reason
    }
  }
}

async function readToCommit(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  stream: AnswerStream,
  digest: Digest,
  clock: AttemptClock,
): Promise<{ head: Bytes; ended: boolean }> {
  for (;;) {
    const { value, done } = await reader.read().catch(() => {
      throw lostConnection(clock, false)
    })
    if (done) {
      const head = stream.end()
      if (!stream.committed) throw new AttemptFailure({ kind: 'unclassified' })
      return { head, ended: true }
    }
    digest.update(value)
    const head = stream.push(value)
    if (stream.committed) return { head: concatBytes(head), ended: false }
  }
}
