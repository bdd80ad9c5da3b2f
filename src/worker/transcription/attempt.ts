import { sha256Hex } from '../../protocol/digest.ts'
import { callDeps, readingTurn } from '../context.ts'
import { inOneStep } from '../json/steps.ts'
import { AttemptClock } from '../provider/attempt-clock.ts'
import { toAttemptFailure } from '../provider/attempt-failure.ts'
import { callProvider } from '../provider/call.ts'
import { AttemptFailure, classifyTranscriptionResponse } from '../provider/failure.ts'
import { streamPieces } from '../provider/streamed-body.ts'
import { readAnswer } from '../provider/read-answer.ts'
import { readWholeBody } from '../provider/whole-body.ts'
import type { WholeProgress } from '../completion/whole-progress.ts'
import type { PlannedAttempt } from '../routing/plan.ts'
import type { AdmittedTranscription } from './admitted.ts'
import { providerForm } from './provider-form.ts'
import { readTranscript, type Transcript } from './transcript.ts'

/** A provider's complete answer, with the digests that its receipt names. */
export interface TranscriptAnswer {
  readonly transcript: Transcript
  readonly requestDigest: string
  readonly responseDigest: string
  readonly evidenceSha256: string | null
  /** Whether the answer arrived compressed; its digest is then over the decompressed bytes. */
  readonly decoded: boolean
}

/**
 * Time limit for the request's digest, ms. Normally the digest is ready, because a valid answer comes only after the whole
 * request was read.
 */
const DIGEST_MS = 30_000

/**
 * One attempt on one route with the whole file. Providers send headers together with the finished answer, so only the
 * request's budget limits the attempt, and `limitMs` while other routes remain.
 * @throws AttemptFailure when the provider failed
 * @throws ApiError when a limit of the router keeps the answer from being read
 */
export async function requestTranscript(
  { context, admission, parsed, constraints }: AdmittedTranscription,
  { route }: PlannedAttempt,
  limitMs: number | undefined,
  { budget, room }: WholeProgress,
): Promise<TranscriptAnswer> {
  const clock = new AttemptClock(budget, context.now, context.after)
  clock.enter(limitMs)
  try {
    const form = providerForm(parsed, route, `cmr-${context.newId()}`)
    const body = streamPieces(form.pieces, clock.signal)
    const reply = await callProvider({
      route,
      path: '/audio/transcriptions',
      body: body.readable,
      contentType: form.contentType,
      accept: 'application/json',
      clock,
      constraints,
      ...callDeps(context),
      classify: classifyTranscriptionResponse,
    })
    const bytes = await readWholeBody(reply, clock, room)
    const turn = readingTurn(context, admission.customerId)
    const transcript = await readAnswer(bytes, turn, (answer) =>
      inOneStep(() => readTranscript(answer, Number(parsed.temperature ?? 0))),
    )
    clock.enter(DIGEST_MS)
    return {
      transcript,
      requestDigest: await body.digest.catch(() => {
        throw timeoutOf(clock)
      }),
      responseDigest: await sha256Hex(bytes),
      evidenceSha256: reply.evidenceSha256,
      decoded: reply.decoded,
    }
  } catch (error) {
    throw toAttemptFailure(error)
  } finally {
    clock.abort(new AttemptFailure({ kind: 'unavailable' }))
  }
}

/** The error for an answer that arrived before the provider had read the whole request: the abort's reason, if any. */
function timeoutOf(clock: AttemptClock): unknown {
  return clock.signal.aborted ? clock.signal.reason : new AttemptFailure({ kind: 'unclassified' })
}
