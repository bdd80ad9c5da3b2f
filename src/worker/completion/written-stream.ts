import { utf8 } from '../../protocol/bytes.ts'
import type { StreamSpec, StreamRecord } from '../../protocol/stream-record.ts'
import type { OwnSignal } from '../calls/own-signal.ts'
import { LinkUnavailable, type Link } from '../link/link.ts'
import type { AttemptClock } from '../provider/attempt-clock.ts'
import { toAttemptFailure } from '../provider/attempt-failure.ts'
import { AttemptFailure } from '../provider/failure.ts'
import type { CarriedCall } from '../routing/carried-calls.ts'
import { BrokenStream } from '../stream/broken-stream.ts'
import { countedAnswer, type StreamedAnswer } from '../stream/streamed-answer.ts'
import { UsageTally } from '../stream/usage-tally.ts'
import type { Produced } from '../stream/billed-usage.ts'
import { NOTHING_WRITTEN } from '../stream/encoder.ts'
import type { ChunkSource } from './chunk-source.ts'
import type { LastEvents } from './format.ts'
import {
  cutBy,
  cutByLoss,
  type ClientEnd,
  type CommittedStream,
  type RelayedStream,
  type StreamEnd,
} from './open-stream.ts'

export interface WrittenStreamDeps {
  readonly link: Pick<Link, 'endStream' | 'streamRecord' | 'state'>
  readonly clock: AttemptClock
  /** The request's budget. */
  readonly budget: OwnSignal
  readonly last: LastEvents
}

const timedOut = () => new AttemptFailure({ kind: 'timeout' })
const unavailable = () => new AttemptFailure({ kind: 'unavailable' })
const daemonLost = () => new LinkUnavailable('the enclave daemon cannot say how a stream ended')

/**
 * A stream whose chunks the daemon writes. The daemon reads the provider, enforces the time limits after the commit point
 * and sends keep-alive comments. Its chunks are passed to the client unchanged, and end after a complete event however the
 * stream ended. The daemon's record says how it ended and what is billed.
 */
export class WrittenStream implements CommittedStream {
  readonly pumped: ChunkSource['pumped']
  readonly #spec: StreamSpec
  readonly #source: ChunkSource
  readonly #deps: WrittenStreamDeps
  /** The record, where it was requested from the daemon. */
  #asked: Promise<StreamRecord> | undefined

  constructor(spec: StreamSpec, source: ChunkSource, deps: WrittenStreamDeps) {
    this.pumped = (onDisconnect) => source.pumped(onDisconnect)
    this.#spec = spec
    this.#source = source
    this.#deps = deps
  }

  /**
   * Waits for the first chunk, which is the commit point.
   * @throws AttemptFailure when the provider failed before it
   * @throws BrokenStream when its stream was invalid
   * @throws LinkUnavailable when the daemon is lost
   */
  async reachCommit(): Promise<void> {
    const { signal } = this.#deps.clock
    const hasBegun = await this.#source.begin().catch(() => {
      // Whatever the provider does, the daemon ends the chunks properly; so this is a lost daemon.
      throw signal.aborted ? signal.reason : daemonLost()
    })
    if (!hasBegun) throw failureOf(await this.#end())
    // Unlimited: before it relays, the router may have to wait for something else, and reads nothing meanwhile.
    this.#deps.clock.enter(undefined)
  }

  /**
   * Ends the stream.
   * @returns what the provider has produced; nothing when the daemon no longer knows
   */
  async produced(): Promise<Produced> {
    return this.#answer(await this.#end().catch(() => undefined))
  }

  async relayTo(
    client: ClientEnd,
    clientDisconnected: AbortSignal,
    carried: CarriedCall,
  ): Promise<RelayedStream> {
    const { clock, budget } = this.#deps
    // From here on the daemon enforces the time limits. It ends an overdue stream after a complete event.
    clock.stop()
    const giveUp = () => {
      if (clientDisconnected.aborted) clock.abort(budget.reason)
      else void this.#end().catch(() => clock.abort(daemonLost()))
    }
    if (budget.aborted) giveUp()
    const forgetBudget = budget.onAbort(giveUp)
    const watch = setInterval(() => this.#watchDaemon(), this.#spec.idle_ms)
    const taken = await this.#source.passTo(client).then(
      () => true,
      () => false,
    )
    clearInterval(watch)
    forgetBudget()
    const aborted: unknown = clock.signal.aborted ? clock.signal.reason : undefined
    clock.abort(unavailable())
    const record = await this.#end().catch(() => undefined)
    const end = clientDisconnected.aborted
      ? ({ kind: 'client_gone' } as const)
      : // A stream that lasts longer than it may is not the route's failure.
        await endOf(taken ? record : undefined, budget.aborted ? budget.reason : aborted, carried)
    return {
      end,
      answer: this.#answer(record),
      providerDigest: async () => record?.provider_sha256 ?? unknownDigest(),
      clientDigest: client.seesBytes ? undefined : record?.client_sha256,
      fail: (error) => utf8(this.#deps.last.fail(record?.tail, error)),
    }
  }

  /** Aborts when the daemon no longer answers, because it then cannot end a silent stream. */
  #watchDaemon(): void {
    const { link, clock } = this.#deps
    link.state().catch(() => clock.abort(daemonLost()))
  }

  /**
   * The stream's record, as the daemon sent it by itself, or else as requested once; the request ends a stream that is still
   * open.
   */
  async #end(): Promise<StreamRecord> {
    const { link } = this.#deps
    const record = await this.#source.record()
    if (record !== undefined && record !== '') return link.streamRecord(record)
    this.#asked ??= link.endStream(this.#spec.stream)
    return this.#asked
  }

  #answer(record: StreamRecord | undefined): StreamedAnswer {
    return countedAnswer(
      {
        finishReason: record?.finish_reason ?? undefined,
        tally: record === undefined ? new UsageTally() : UsageTally.of(record.counts),
        providerResponseId: record?.provider_response_id ?? undefined,
        tail: record?.tail ?? NOTHING_WRITTEN,
      },
      this.#deps.last,
    )
  }
}

/**
 * How a stream ended whose client is still connected. A stream without a record did not arrive completely. That is never the
 * provider's failure: whatever the provider does, the daemon ends the body properly and knows why.
 */
async function endOf(
  record: StreamRecord | undefined,
  aborted: unknown,
  carried: CarriedCall,
): Promise<StreamEnd> {
  if (record?.ending.kind === 'broken') return cutBy(failureOf(record))
  if (record !== undefined && record.finish_reason !== null) return { kind: 'complete' }
  const cause = aborted ?? (record === undefined ? daemonLost() : failureOf(record))
  if (!(cause instanceof LinkUnavailable)) return cutBy(cause)
  return cutByLoss((await carried.lostThread()) ?? { error: cause, failure: undefined })
}

function failureOf({ ending }: StreamRecord): unknown {
  if (ending.kind === 'broken') return toAttemptFailure(new BrokenStream(ending.reason))
  return ending.kind === 'lost' ? unavailable() : timedOut()
}

function unknownDigest(): never {
  throw new Error('internal error: a complete stream without a record')
}
