import type { Context, Handler } from '../context.ts'
import { authenticate, readApiKey, type PresentedKey } from '../auth/authenticate.ts'
import { wantsReceipt } from '../http/receipt-option.ts'
import type { Route } from '../provider/route.ts'
import { pause } from '../routing/budget.ts'
import { planTranscription, type TranscriptionPlan } from '../routing/plan-transcription.ts'
import { admit, RESERVATION_SLACK_MS } from '../settle/admit.ts'
import { worstCase } from '../settle/price.ts'
import { measureSeconds } from './duration.ts'
import { longestSeconds, mostPromptTokens } from './estimate.ts'
import { parseForm } from './form.ts'
import { answerTranscription } from './reply.ts'
import { parseTranscriptionRequest, type TranscriptionRequest } from './request.ts'
import { checkUploadHeaders, freeUpload, readUpload } from './upload-body.ts'

/**
 * POST /v1/audio/transcriptions: key -> headers -> room in memory -> body -> answered -> room given back.
 * The key is looked up before room is taken, so that nobody without one can keep others waiting.
 */
export const transcribe: Handler = async (request, context) => {
  const key = await readApiKey(request, context)
  await authenticate(request, context)
  const { room } = checkUploadHeaders(request.headers)
  return inTurn(room, context, () => transcribeUpload(request, context, key, room))
}

/** Does work that needs `room` bytes of memory when there are as many. */
async function inTurn(
  room: number,
  { uploads, now }: Context,
  work: () => Promise<Response>,
): Promise<Response> {
  const pass = await uploads.enter(room, { now, pause })
  try {
    return await work()
  } finally {
    pass.leave()
  }
}

/** The plan of the request, but routes that rest are tried last; what counts as failover is as before. */
function planByHealth(
  { catalogue, health, now }: Context,
  ask: TranscriptionRequest,
): TranscriptionPlan {
  const at = now()
  const criteria = { ...ask, mimeType: ask.audio.type, bytes: ask.file.bytes.length }
  const order = (routes: readonly Route[]) => health.prefer(routes, at)
  const plan = planTranscription(catalogue, criteria, { order })
  return { ...plan, attempts: health.restingLast(plan.attempts, at) }
}

/** body -> form -> checked -> plan -> daemon alive -> measured -> admitted -> answered. */
async function transcribeUpload(
  request: Request,
  context: Context,
  key: PresentedKey,
  room: number,
): Promise<Response> {
  const clientRequest = await readUpload(request, room, context.now)
  try {
    const form = parseForm(request.headers.get('content-type') ?? '', clientRequest)
    const ask = parseTranscriptionRequest(form)
    const { container } = ask.audio
    const plan = planByHealth(context, ask)
    // A receipt is signed before the answer leaves; without one nothing else would ask the daemon.
    const receipt = wantsReceipt(request.headers)
    await (receipt ? context.link.state() : context.link.stateSince(context.now()))
    const measuredSeconds = await measureSeconds(ask.file.bytes, container, () => pause(0))

    const routes = plan.attempts.map(({ route }) => route)
    const audioSeconds = measuredSeconds ?? longestSeconds(ask.file.bytes.length)
    const promptTokens = mostPromptTokens(ask, audioSeconds)
    const { plans, service } = context.config
    const now = context.now()
    const admission = await admit(context.storage.customer(key.customerId), {
      requestId: context.requestId,
      key,
      plans,
      reserveNano: (discountPct) =>
        worstCase(
          routes,
          { promptTokens, maxTokens: undefined, choices: 1, audioSeconds },
          { discountPct, usdEur: service.usd_eur },
        ),
      expiresAt: now + service.timeouts.transcription_ms + RESERVATION_SLACK_MS,
      now,
    })
    const admitted = { context, ask, plan, admission, receipt, measuredSeconds, clientRequest }
    return await answerTranscription(admitted)
  } finally {
    freeUpload(clientRequest)
  }
}
