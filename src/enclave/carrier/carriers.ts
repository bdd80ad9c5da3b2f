import type { FromDaemon, LinkServerPlan } from '../../protocol/boot.ts'
import { countersFor } from '../egress/event-memory.ts'
import type { ReceiptKeyParts } from '../keys/receipt-key.ts'
import type { LinkReply } from '../link-server/reply.ts'
import { answerForwarded, type AnswerRoute } from '../link/dispatch.ts'
import type { Log } from '../log.ts'
import type { ProviderProofs } from '../proofs.ts'
import { bodyReader } from '../read-body.ts'
import type { HostCounts } from '../telemetry/host-counts.ts'
import { CarrierHost } from './carrier-host.ts'
import type { Changes } from './changes.ts'
import type { Facts } from './facts.ts'
import { CARRIER_HEARTBEAT } from './heartbeat.ts'
import type { Question } from './messages.ts'

export interface CarriersInputs {
  readonly link: LinkServerPlan
  /** One for each carrier; 0 = any free port. */
  readonly ports: readonly number[]
  readonly key: ReceiptKeyParts
  /** How many streams each carrier may have that are open or not settled. */
  readonly maxStreams: number
  /** The current facts. */
  readonly facts: () => Facts
  readonly proofs: Pick<ProviderProofs, 'distrust' | 'reverify'>
  /** Routes that the main thread answers for all carriers. */
  readonly routes: readonly AnswerRoute[]
  readonly log: Log
  readonly notify: (message: FromDaemon) => void
  readonly counts: Pick<HostCounts, 'carrierLost'>
  /** Milliseconds that never go back. */
  readonly monotonic: () => number
  /** Emits when facts have changed. */
  readonly changes: Changes
}

/** Threads that carry calls to providers and sign receipts, each for some of the host's workers. */
export interface Carriers {
  /** The port of each carrier. */
  readonly ports: readonly number[]
  /** Terminates the carrier of that port, which no longer answers; a new one is started. */
  end(port: number): void
  close(): Promise<void>
}

const CARRIER_THREAD = new URL('./carrier-thread.ts', import.meta.url)

/** @throws Error when a carrier ends before it listens */
export async function startCarriers(inputs: CarriersInputs): Promise<Carriers> {
  const { link, ports, facts, notify, counts, proofs, routes, log } = inputs
  const answer = (question: Question) => answerQuestion(question, { proofs, routes, log })
  const eventMemory = countersFor(ports.length)
  const hosts = ports.map(
    (port, index) =>
      new CarrierHost({
        ...inputs,
        link: { ...link, port },
        eventMemory,
        place: index,
        answer,
        heartbeat: CARRIER_HEARTBEAT,
        onLost: (why) => {
          counts.carrierLost(why)
          notify({ type: 'carrier_lost', reason: `number ${index + 1} ${why}` })
        },
        onRestored: () => notify({ type: 'carrier_restored', reason: `number ${index + 1}` }),
        program: CARRIER_THREAD,
      }),
  )
  // When this has returned, no carrier uses older facts.
  const tell = () => {
    const now = facts()
    for (const host of hosts) host.tell(now)
  }
  if (hosts.length > 0) inputs.changes.on('changed', tell)
  const close = async () => {
    inputs.changes.off('changed', tell)
    await Promise.all(hosts.map((host) => host.close()))
  }
  try {
    await Promise.all(hosts.map((host) => host.start()))
  } catch (error) {
    await close()
    throw error
  }
  return {
    ports: hosts.map(({ port }) => port),
    end: (port) => hosts.find((host) => host.port === port)?.end(),
    close,
  }
}

async function answerQuestion(
  question: Question,
  { proofs, routes, log }: Pick<CarriersInputs, 'proofs' | 'routes' | 'log'>,
): Promise<LinkReply | undefined> {
  if (question.type === 'reverify') {
    await proofs.reverify(question.provider, question.stale)
    return undefined
  }
  const { method, target, body } = question
  return answerForwarded(routes, { method, target, body: bodyReader(body) }, log)
}
