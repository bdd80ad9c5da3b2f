import { releaseAdmission } from '../admission.ts'
import { settleDeps, wholeAttemptDeps } from '../context.ts'
import { ApiError } from '../http/errors.ts'
import { receiptHeader } from '../http/receipt-option.ts'
import { attemptRoutes, type Served } from '../routing/attempt.ts'
import { Budget, pause } from '../routing/budget.ts'
import { TRANSCRIPTION_FAILURE_MAPPING } from '../routing/failure-mapping.ts'
import { settleWhole } from '../settle/settle-whole.ts'
import type { AdmittedTranscription } from './admitted.ts'
import { makeAnswer } from './answer.ts'
import { measureSeconds } from './duration.ts'
import { transcriptionExchange } from './settling.ts'
import type { Transcript } from './transcript.ts'
import { requestTranscript, type TranscriptAnswer } from './attempt.ts'

/**
 * Answers an admitted transcription: attempts -> transcript -> settlement -> body. If settlement fails, the answer is
 * withheld and costs nothing. The request runs to its end even when the client disconnects.
 */
export async function answerTranscription(admitted: AdmittedTranscription): Promise<Response> {
  try {
    const receiptId = admitted.receipt ? admitted.context.newId() : null
    return await settled(admitted, await served(admitted), receiptId)
  } catch (error) {
    await releaseAdmission(admitted.context, admitted.admission)
    throw error
  }
}

const outOfTime = () =>
  new ApiError('upstream_error', 'The request ran out of time before a provider answered.')

async function served(admitted: AdmittedTranscription): Promise<Served<TranscriptAnswer>> {
  const { context, plan } = admitted
  const budget = new Budget(context.now)
  budget.limit(context.config.service.timeouts.transcription_ms, outOfTime)
  try {
    return await attemptRoutes(
      plan.attempts,
      (attempt, limitMs) => requestTranscript(admitted, attempt, limitMs, budget.signal),
      wholeAttemptDeps(context, budget, TRANSCRIPTION_FAILURE_MAPPING),
    )
  } finally {
    budget.end()
  }
}

async function settled(
  admitted: AdmittedTranscription,
  { attempt, value }: Served<TranscriptAnswer>,
  receiptId: string | null,
): Promise<Response> {
  const { context, admission, parsed, clientRequest, once } = admitted
  const measuredSeconds = await measureIfUnreported(admitted, value.transcript)
  const exchange = transcriptionExchange(admitted, attempt, value.transcript, measuredSeconds)
  const transcript = { ...value.transcript, measuredSeconds }
  const { body, toResponse } = makeAnswer(parsed, transcript, exchange, receiptId)
  const response = toResponse({ ...admission.rateLimitHeaders, ...receiptHeader(receiptId) })
  const answer = await once?.seal({ headers: response.headers, body })
  const proof = { ...value, clientRequest, clientResponse: body }
  const tools = settleDeps(context, admission.customerId)
  await settleWhole({ ...exchange, answer: answer ?? null }, receiptId, proof, tools)
  return response
}

/** Pause between two slices of a measurement, ms. A slice blocks the thread for about as long. */
const PAUSE_MS = 2

const yieldThread = () => pause(PAUSE_MS)

/** Measures the audio only when the provider reports no duration, because it may take seconds of CPU time. */
async function measureIfUnreported(
  { context, admission, parsed }: AdmittedTranscription,
  { seconds }: Transcript,
): Promise<number | undefined> {
  if (seconds !== undefined) return undefined
  return context.shared.measuring.during(admission.customerId, 1, { now: context.now, pause }, () =>
    measureSeconds(parsed.file.bytes, parsed.audio.container, yieldThread),
  )
}
