import type { Bytes } from '../../protocol/bytes.ts'
import { admitRequest, attemptsAccepted, refuseUsedUp } from '../admission.ts'
import { enterDeps, type Context, type Handler } from '../context.ts'
import { authenticate, readApiKey } from '../auth/authenticate.ts'
import type { PresentedKey } from '../auth/api-key.ts'
import { constraintsOf } from '../http/attestation-member.ts'
import { wantsReceipt } from '../../protocol/wants-receipt.ts'
import { readIdempotentRequest } from '../idempotency/idempotent-request.ts'
import { unusedHeaders } from '../provider/dropped-members.ts'
import type { Route } from '../provider/route.ts'
import type { ReadRequest } from '../completion/request-body.ts'
import { costOfBytes } from '../limits/fair-turns.ts'
import { planTranscription, type TranscriptionPlan } from '../routing/plan-transcription.ts'
import type { AdmittedTranscription } from './admitted.ts'
import { statedSeconds } from './duration.ts'
import { maxUsage } from './estimate.ts'
import { FIELDS, parseForm, type UploadForm } from './form.ts'
import { answerTranscription, yieldThread } from './reply.ts'
import { checkForm, type CheckedForm, type TranscriptionRequest } from './request.ts'
import { maxSeconds } from './seconds-bounds.ts'
import { checkUploadHeaders, freeUpload, readUpload } from './upload-body.ts'

/**
 * Headers without effect on a transcription: its time limit is `timeouts.transcription_ms`, and the router fails over only
 * among the routes of the model.
 */
const UNUSED_HEADERS = ['X-Service-Timeout-Seconds', 'X-Service-Failover', 'X-Service-Reasoning']

/**
 * POST /v1/audio/transcriptions: key -> headers -> reserve memory -> body -> answer -> release memory.
 * The key is checked before memory is reserved, so that requests without a valid key cannot delay others.
 */
export const transcribe: Handler = async (request, context) => {
  const key = await readApiKey(request, context)
  refuseUsedUp(request, context, key)
  await authenticate(request, context)
  const { room } = checkUploadHeaders(request.headers)
  return context.shared.uploads.during(key.customerId, room, enterDeps(context), () =>
    transcribeUpload(request, context, key, room),
  )
}

/** Plans the request. Routes that are out of service are moved to the end; their failover marks do not change. */
function planByHealth(
  { catalogue, health, now, owner }: Context,
  parsed: TranscriptionRequest,
): TranscriptionPlan {
  const at = now()
  const criteria = { ...parsed, mimeType: parsed.audio.type, bytes: parsed.file.bytes.length }
  const order = (routes: readonly Route[]) => health.prefer(routes, at)
  const plan = planTranscription(catalogue, criteria, { order })
  return { ...plan, attempts: health.openCircuitsLast(plan.attempts, at, owner) }
}

/** Body -> form -> answer of an earlier request -> admit -> answer. */
async function transcribeUpload(
  request: Request,
  context: Context,
  key: PresentedKey,
  room: number,
): Promise<Response> {
  const clientRequest = await readUpload(request, room, context)
  try {
    const begun = await context.inTurn(costOfBytes(clientRequest.length), async (moreCost) => {
      const form = parseForm(request.headers.get('content-type') ?? '', clientRequest)
      const idempotent = await readIdempotentRequest(request, context, key, contentOf(form))
      const earlier = await idempotent?.earlierAnswer(request, moreCost)
      return earlier ?? admit(request, context, form, { key, clientRequest, idempotent })
    })
    return begun instanceof Response ? begun : await answerTranscription(begun)
  } finally {
    freeUpload(clientRequest)
  }
}

/** Check -> plan -> daemon alive -> admit. */
async function admit(
  request: Request,
  context: Context,
  form: UploadForm,
  { key, clientRequest, idempotent }: ReadRequest,
): Promise<AdmittedTranscription> {
  const given = checkForm(form)
  const parsed = {
    ...given,
    constraints: constraintsOf(given.constraints, request.headers),
    longestSeconds: await longestSeconds(given),
  }
  const plan = planByHealth(context, parsed)
  // A receipt needs the daemon before the answer is sent, so a cached state is enough. Without one, nothing else checks that
  // the daemon is alive.
  const receipt = wantsReceipt(request.headers)
  await (receipt ? context.link.state() : context.link.stateReadAfter(context.now()))
  const acceptable = await attemptsAccepted(context, parsed.constraints, plan.attempts)
  const { admission, attempts, constraints } = await admitRequest(context, key, {
    attempts: acceptable,
    constraints: parsed.constraints,
    maxUsageOn: (route) => maxUsage(parsed, route),
    maxDelayMs: context.config.service.timeouts.transcription_ms,
    idempotent,
  })
  return {
    context,
    parsed,
    plan: { ...plan, attempts },
    constraints,
    admission,
    receipt,
    unused: [...form.dropped, ...unusedHeaders(request.headers, UNUSED_HEADERS)],
    idempotent,
    clientRequest,
  }
}

/** The longest duration that the file can have, by its size and by what it states, in seconds. */
async function longestSeconds({ file, audio }: CheckedForm): Promise<number> {
  const stated = await statedSeconds(file.bytes, audio.container, yieldThread)
  return maxSeconds(file.bytes, audio.container, stated)
}

/** The content that identifies a form. The body itself does not, because a repeat has another boundary. */
function contentOf({ file, fields }: UploadForm): readonly (string | Bytes)[] {
  const texts = JSON.stringify(FIELDS.map((name) => fields.get(name)))
  return file === undefined ? [texts] : [texts, file.name, file.type ?? '', file.bytes]
}
