import type { Bytes } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { settleDeps } from '../context.ts'
import { errorFields } from '../http/error-fields.ts'
import { eventStream } from '../http/reply.ts'
import { toApiError } from '../http/to-api-error.ts'
import { toAttemptFailure } from '../provider/attempt-failure.ts'
import { droppedMembersHeader } from '../provider/dropped-members.ts'
import { BrokenStream } from '../stream/broken-stream.ts'
import { serviceObject } from '../stream/service-object.ts'
import type { StreamedAnswer } from '../stream/streamed-answer.ts'
import { settleWithReceipt, settleWithoutReceipt } from '../settle/settle.ts'
import type { Exchange } from '../settle/exchange.ts'
import { chatExchange, type AdmittedChat } from './admitted.ts'
import type { ClientStream } from './client-stream.ts'
import { settleUnreceipted } from './settle-unreceipted.ts'
import {
  cutBy,
  type ClientEnd,
  type OpenStream,
  type RelayedStream,
  type StreamEnd,
} from './open-stream.ts'

/** A client's end; one that sees the bytes also records them for repeats of the request. */
type StreamClient = ClientEnd & Partial<Pick<ClientStream, 'recorded'>>

/**
 * Settles a relayed stream by how it ended and sends its last event. A usage row is always written; a receipt is
 * issued for a complete answer only, and is stored before its id is sent.
 */
export async function endStream(
  admitted: AdmittedChat,
  open: OpenStream,
  relayed: RelayedStream,
  client: StreamClient,
): Promise<void> {
  const { end, answer, fail } = relayed
  const exchange = chatExchange(admitted, open.attempt, answer)
  if (end.kind === 'complete') return endComplete(admitted, open, relayed, exchange, client)
  if (end.kind === 'cut') return endCut(admitted, open, exchange, { ...end, fail }, client)
  logCut(admitted, open, end.kind)
  await settleUnreceipted(admitted, exchange)
}

async function endCut(
  admitted: AdmittedChat,
  open: OpenStream,
  exchange: Exchange,
  { failure, error, fail }: Extract<StreamEnd, { kind: 'cut' }> & Pick<RelayedStream, 'fail'>,
  client: StreamClient,
): Promise<void> {
  const { context } = admitted
  logCut(admitted, open, failure?.kind ?? error.code)
  const last = fail(error)
  await settleUnreceipted(admitted, await withAnswer(admitted, open, exchange, client, last))
  if (failure !== null) {
    const { route } = open.attempt
    // The answer had begun, so the content of the request may have caused its end.
    const cut = { ...failure, mayBeContent: failure.kind !== 'rate_limited' }
    context.health.failed(route, context.now(), cut, context.owner)
  }
  await client.finish(last)
}

function logCut({ context }: AdmittedChat, { attempt }: OpenStream, failure: string): void {
  context.log('stream_cut', { request_id: context.requestId, route: attempt.route.id, failure })
}

/** Adds the sealed answer for repeats, where the request has an `Idempotency-Key`. */
async function withAnswer(
  admitted: AdmittedChat,
  { attempt }: OpenStream,
  exchange: Exchange,
  client: StreamClient,
  last: Bytes,
): Promise<Exchange> {
  if (admitted.idempotent === undefined) return exchange
  const dropped = droppedMembersHeader(admitted, [attempt.route])
  const { headers } = eventStream(null, { ...admitted.headers, ...dropped })
  const answer = await admitted.idempotent.seal({ headers, body: client.recorded?.(last) })
  return { ...exchange, answer }
}

async function endComplete(
  admitted: AdmittedChat,
  open: OpenStream,
  { answer, providerDigest, clientDigest, fail }: RelayedStream,
  exchange: Exchange,
  client: StreamClient,
): Promise<void> {
  const { context, receiptId } = admitted
  const tools = settleDeps(context, admitted.admission.customerId)
  const closing = closingEvents(answer, exchange)
  // A client that has disconnected by now has received all content.
  await client.send(closing instanceof BrokenStream ? closing.output : closing).catch(() => {})
  if (closing instanceof BrokenStream) {
    return endCut(admitted, open, exchange, { ...cutBy(toAttemptFailure(closing)), fail }, client)
  }
  const clientResponse = clientDigest ?? (await client.seal())
  const last = answer.close(serviceObject(exchange, receiptId), exchange.usage)
  const whole = await withAnswer(admitted, open, exchange, client, last)
  try {
    if (receiptId === null) await settleWithoutReceipt(whole, tools)
    else {
      const digests = {
        providerRequest: open.requestDigest,
        providerResponse: await providerDigest(),
        clientRequest: await sha256Hex(admitted.clientRequest),
        clientResponse,
      }
      const { providerResponseId } = answer
      const { evidenceSha256, decoded } = open
      const proof = { digests, evidenceSha256, decoded, providerResponseId }
      await settleWithReceipt(whole, proof, receiptId, tools)
    }
  } catch (error) {
    context.log('settle_failed', { request_id: context.requestId, ...errorFields(error) })
    const failed = fail(toApiError(error))
    await settleUnreceipted(admitted, await withAnswer(admitted, open, exchange, client, failed))
    await client.finish(failed)
    return
  }
  await client.finish(last)
}

/** The events before the last one, or the error where there is no memory for them. */
function closingEvents(answer: StreamedAnswer, { usage }: Exchange): Bytes | BrokenStream {
  try {
    return answer.finish(usage)
  } catch (error) {
    if (error instanceof BrokenStream) return error
    throw error
  }
}
