import { openCalls } from '../calls.ts'
import { EventMemory } from '../egress/event-memory.ts'
import { receiptKeyOf } from '../keys/receipt-key.ts'
import { createCarrierRoutes } from '../link/carrier-routes.ts'
import { answered, createDispatcher } from '../link/dispatch.ts'
import { createMessageDispatcher } from '../link/message-dispatch.ts'
import { startLinkServer, type LinkServer } from '../link-server/server.ts'
import type { Log } from '../log.ts'
import { createForwardedRoute } from './forwarded-route.ts'
import { FactMirror } from './fact-channel.ts'
import { SINGLE_ROW } from './facts.ts'
import type { CarrierData, FromCarrier } from './messages.ts'
import { createMirroredProofs } from './mirrored-proofs.ts'
import type { Questions } from './questions.ts'

export interface CarrierTools {
  readonly questions: Pick<Questions, 'ask'>
  readonly send: (message: FromCarrier) => void
  /** The id of this thread, a UUID. */
  readonly thread: string
  /** Milliseconds. */
  readonly now: () => number
}

/**
 * Carries the calls of its workers and signs their receipts, on a link server of its own. It uses the facts that the
 * main thread sends, and asks the main thread for everything else.
 */
export function startCarrier(
  { link, key: parts, facts: feed, eventMemory, place, maxStreams }: CarrierData,
  { questions, send, thread, now }: CarrierTools,
): Promise<LinkServer> {
  const log: Log = (event, fields) => send({ type: 'log', event, fields })
  const mirror = new FactMirror(feed)
  const service = () => {
    const told = mirror.facts.service.get(SINGLE_ROW)
    if (told === undefined) throw new Error('internal error: a carrier that was told nothing')
    return told
  }
  const proofs = createMirroredProofs({ mirror, questions, send, now })
  const connectMs = () => service().connectMs
  const memory = new EventMemory(undefined, eventMemory, place)
  const key = receiptKeyOf(parts)
  const routerHop = (sha256: string) => mirror.facts.routerHops.get(sha256)
  const signer = { key, routerHop }
  const calls = { proofs, connectMs, memory, signer, maxStreams, now, thread, log }
  const { egress, proveMessage } = openCalls(calls)
  const routes = createCarrierRoutes({
    state: () => ({
      generation: service().generation,
      kid: key.kid,
      jwk: key.jwk,
      envelope_sha256: envelopeOf(mirror, now()),
    }),
    thread,
    signer: { ...signer, proofs, proveMessage },
    egress,
  })
  const messages = createMessageDispatcher({ routes: answered(routes), egress, log })
  const dispatcher = createDispatcher([...routes, createForwardedRoute(questions)], log)
  return startLinkServer(link, dispatcher, { messages, chunks: egress.sendChunks })
}

function envelopeOf({ facts }: FactMirror, now: number): string | null {
  const envelope = facts.envelope.get(SINGLE_ROW)
  return envelope !== undefined && now < envelope.until ? envelope.sha256 : null
}
