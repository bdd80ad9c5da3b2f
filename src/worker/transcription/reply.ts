import { settleTools, wholeAttemptTools } from '../context.ts'
import { ApiError } from '../http/errors.ts'
import { receiptHeader } from '../http/receipt-option.ts'
import { attemptRoutes, type Served } from '../routing/attempt.ts'
import { Budget } from '../routing/budget.ts'
import { TRANSCRIPTION_VERDICTS } from '../routing/failure-mapping.ts'
import { settleWhole } from '../settle/settle-whole.ts'
import { releaseAdmission, type AdmittedTranscription } from './admitted.ts'
import { makeAnswer, type Answer } from './answer.ts'
import { transcriptionExchange } from './settling.ts'
import { askTranscript, type TranscriptAnswer } from './attempt.ts'

/**
 * Answers an admitted transcription: attempts -> transcript -> settled -> body. If settling fails the answer is
 * withheld and costs nothing. A client that leaves changes nothing: the request runs to its end.
 */
export async function answerTranscription(admitted: AdmittedTranscription): Promise<Response> {
  try {
    const receiptId = admitted.receipt ? admitted.context.newId() : null
    const answer = await settled(admitted, await served(admitted), receiptId)
    return answer.toResponse({
      ...admitted.admission.rateLimitHeaders,
      ...receiptHeader(receiptId),
    })
  } catch (error) {
    await releaseAdmission(admitted)
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
      (attempt, limitMs) => askTranscript(admitted, attempt, limitMs, budget.signal),
      wholeAttemptTools(context, budget, TRANSCRIPTION_VERDICTS),
    )
  } finally {
    budget.end()
  }
}

async function settled(
  admitted: AdmittedTranscription,
  { attempt, value }: Served<TranscriptAnswer>,
  receiptId: string | null,
): Promise<Answer> {
  const { context, admission, clientRequest } = admitted
  const exchange = transcriptionExchange(admitted, attempt, value.transcript)
  const answer = makeAnswer(admitted, value.transcript, exchange, receiptId)
  const proof = { ...value, clientRequest, clientResponse: answer.body }
  await settleWhole(exchange, receiptId, proof, settleTools(context, admission.customerId))
  return answer
}
