import { utf8 } from '../../protocol/bytes.ts'
import { serveWholeAnswer, type WrittenAnswer } from '../completion/serve-whole-answer.ts'
import { ApiError } from '../http/errors.ts'
import { receiptHeader } from '../http/receipt-option.ts'
import { droppedNamesHeader } from '../provider/dropped-members.ts'
import type { Served } from '../routing/attempt.ts'
import type { PlannedAttempt } from '../routing/plan.ts'
import type { Exchange } from '../settle/exchange.ts'
import { pause } from '../routing/budget.ts'
import { TRANSCRIPTION_FAILURE_MAPPING } from '../routing/failure-mapping.ts'
import { transcriptionExchange, type AdmittedTranscription } from './admitted.ts'
import { makeAnswer } from './answer.ts'
import { measureSeconds } from './duration.ts'
import type { Transcript } from './transcript.ts'
import { requestTranscript, type TranscriptAnswer } from './attempt.ts'

/**
 * Answers an admitted transcription: attempts -> transcript -> settlement -> body. If settlement fails, the answer is
 * withheld and costs nothing. The request runs to its end even when the client disconnects.
 * @throws ApiError when no route served it
 * @throws LinkUnavailable when the daemon does not answer, or the receipt could not be signed
 * @throws StorageUnavailable when the settlement could not be stored
 */
export function answerTranscription(admitted: AdmittedTranscription): Promise<Response> {
  const { context, plan } = admitted
  const receiptId = admitted.receipt ? context.newId() : null
  return serveWholeAnswer<TranscriptAnswer>(
    {
      ...admitted,
      receiptId,
      attempts: plan.attempts,
      timeoutMs: context.config.service.timeouts.transcription_ms,
      hurried: false,
      failureMapping: TRANSCRIPTION_FAILURE_MAPPING,
      outOfTime,
    },
    {
      ask: (attempt, limitMs, progress) => requestTranscript(admitted, attempt, limitMs, progress),
      write: (served) => written(admitted, served, receiptId),
      lost: (attempt, bytes) => lost(admitted, attempt, bytes),
    },
  )
}

const outOfTime = () =>
  new ApiError('upstream_error', 'The request ran out of time before a provider answered.')

async function written(
  admitted: AdmittedTranscription,
  { attempt, value: { transcript } }: Served<TranscriptAnswer>,
  receiptId: string | null,
): Promise<WrittenAnswer> {
  const { admission, parsed } = admitted
  const measuredSeconds = await measureIfUnreported(admitted, transcript)
  const textBytes = utf8(transcript.text).length
  const heard = { ...transcript, textBytes }
  const exchange = transcriptionExchange(admitted, attempt, heard, measuredSeconds)
  const answer = makeAnswer(parsed, { ...transcript, measuredSeconds }, exchange, receiptId)
  const headers = {
    ...admission.rateLimitHeaders,
    ...receiptHeader(receiptId),
    ...droppedNamesHeader(admitted.unused),
  }
  const response = answer.toResponse(headers)
  return { exchange, body: answer.body, response, providerResponseId: undefined }
}

/**
 * The exchange to bill for a transcript that cannot be read: by the measured duration, or by a typical one where too many
 * measurements are waiting.
 */
async function lost(
  admitted: AdmittedTranscription,
  attempt: PlannedAttempt,
  textBytes: number,
): Promise<Exchange> {
  const heard = { seconds: undefined, usage: undefined, totalTokens: undefined, textBytes }
  const measuredSeconds = await measureIfUnreported(admitted, heard).catch(() => undefined)
  return transcriptionExchange(admitted, attempt, heard, measuredSeconds)
}

/** Pause between two slices of a measurement, ms. A slice blocks the thread for about as long. */
const PAUSE_MS = 2

/** Pauses so that other requests can run. */
export const yieldThread = (): Promise<void> => pause(PAUSE_MS)

/** Measures the audio only when the provider reports no duration, because it may take seconds of CPU time. */
async function measureIfUnreported(
  { context, admission, parsed }: AdmittedTranscription,
  { seconds }: Pick<Transcript, 'seconds'>,
): Promise<number | undefined> {
  if (seconds !== undefined) return undefined
  return context.shared.measuring.during(admission.customerId, 1, { now: context.now, pause }, () =>
    measureSeconds(parsed.file.bytes, parsed.audio.container, yieldThread),
  )
}
