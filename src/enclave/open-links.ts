import type { DaemonBoot, DaemonReady, FromDaemon } from '../protocol/boot.ts'
import { startCarriers, type CarriersInputs } from './carrier/carriers.ts'
import type { Changes } from './carrier/changes.ts'
import { readFacts } from './carrier/read-facts.ts'
import type { Generation } from './config/generations.ts'
import type { Identity } from './identity.ts'
import { receiptKeyOf, type ReceiptKeyParts } from './keys/receipt-key.ts'
import { createCarrierRoutes } from './link/carrier-routes.ts'
import { answered, createDispatcher, type AnswerRoute } from './link/dispatch.ts'
import { createMessageDispatcher } from './link/message-dispatch.ts'
import { startLinkServer } from './link-server/server.ts'
import type { Log } from './log.ts'
import type { Upstream } from './upstream.ts'

export interface LinksInputs {
  readonly boot: DaemonBoot
  readonly receiptKey: ReceiptKeyParts
  /** The configuration in effect. */
  readonly generation: () => Generation
  readonly identity: Identity
  readonly upstream: Upstream
  /** Routes that the main thread answers, whichever thread receives the call. */
  readonly routes: readonly AnswerRoute[]
  /** Emits when any fact that carriers use has changed. */
  readonly changes: Changes
  /** The id of the main thread, a UUID. */
  readonly thread: string
  readonly log: Log
  readonly notify: (message: FromDaemon) => void
  readonly counts: CarriersInputs['counts']
  /** Milliseconds that never go back. */
  readonly monotonic: () => number
}

/** The link servers of the daemon: one in the main thread, and one in each carrier. */
export interface Links {
  readonly ports: Pick<DaemonReady, 'linkPort' | 'carrierPorts'>
  /** Terminates the carrier of that port; a new one is started. */
  endCarrier(port: number): void
  close(): Promise<void>
}

/** @throws Error when a port cannot be opened */
export async function openLinks(inputs: LinksInputs): Promise<Links> {
  const { boot, receiptKey, generation, identity, upstream, routes, thread, log } = inputs
  const key = receiptKeyOf(receiptKey)
  const state = () => ({
    generation: generation().generation,
    kid: key.kid,
    jwk: key.jwk,
    envelope_sha256: identity.envelopes.current?.sha256 ?? null,
  })
  const signer = { key, ...upstream, routerHop: identity.routerHop }
  const own = createCarrierRoutes({ state, thread, signer, ...upstream })
  const { egress } = upstream
  const messages = createMessageDispatcher({ routes: answered(own), egress, log })
  const dispatcher = createDispatcher([...own, ...routes], log)
  const server = await startLinkServer(boot.link, dispatcher, {
    messages,
    chunks: egress.sendChunks,
  })
  const carriers = await startCarriers({
    ...inputs,
    ...upstream,
    link: boot.link,
    ports: boot.carrierPorts ?? [],
    maxStreams: boot.maxStreams,
    key: receiptKey,
    facts: () => readFacts({ generation, identity, ...upstream }),
  })
  return {
    ports: { linkPort: server.port, carrierPorts: carriers.ports },
    endCarrier: (port) => carriers.end(port),
    close: async () => void (await Promise.all([carriers.close(), server.close()])),
  }
}
