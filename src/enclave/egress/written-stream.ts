import type {
  BrokenReason,
  StreamSpec,
  StreamEnding,
  StreamRecord,
} from '../../protocol/stream-record.ts'
import { AnswerChunks } from '../../worker/stream/answer-chunks.ts'
import { BrokenStream } from '../../worker/stream/broken-stream.ts'
import { KEEP_ALIVE } from '../../worker/stream/keep-alive.ts'
import { usageAsBilled } from '../../worker/stream/billing-limits.ts'
import { StageClock } from '../../worker/stream/stage-clock.ts'
import { Stopwatch } from '../../worker/stream/stopwatch.ts'
import { tailLimitMs } from '../../worker/stream/tail-limits.ts'
import { traceError } from '../../protocol/error-trace.ts'
import { LINK_PATHS } from '../../protocol/link.ts'
import type { Log } from '../log.ts'
import type { AnswerBody } from './answer-body.ts'
import type { ChunkJoiner, JoinedStream, PausableSource } from './chunk-joiner.ts'
import { CollectedHash } from './collected-hash.ts'
import type { EventMemory, StreamMemory } from './event-memory.ts'
import type { RequestedStream } from './requested-stream.ts'
import type { WorkerBody } from './worker-body.ts'

export interface WrittenStreamDeps {
  readonly joiner: ChunkJoiner
  /** The source that the answer is read from. */
  readonly source: PausableSource
  readonly memory: EventMemory
  /** Ms. */
  readonly now: () => number
  readonly log: Log
  /**
   * Called once, when the stream has ended, with how long its record must be kept, ms, and a function to call when the
   * record is dropped.
   */
  readonly ended: (record: StreamRecord, keptMs: number, dropped: () => void) => void
  /** Called once, after `ended`, when the worker has closed its connection before it had taken everything. */
  readonly disconnected: () => void
}

/** How long the record of a stream is kept of which nothing was sent, ms: the worker continues without it. */
const UNSENT_KEPT_MS = 60_000

/** A written stream begins with the first output, so all its later chunks may be joined. */
const PAST_OPENING = { over: true, read: () => {} }

/**
 * Turns a provider's stream into the client's, whose bytes the worker passes on unread. The chunks are written with the
 * same modules that a worker uses for other providers, and both the provider's bytes and the client's are hashed.
 * Nothing is sent before the commit point. The provider is read with back-pressure from the worker. The body ends after
 * a complete event, however the stream ended; the record says how it ended.
 */
export class WrittenStream {
  readonly #spec: StreamSpec
  readonly #answer: AnswerBody
  readonly #response: WorkerBody
  readonly #deps: WrittenStreamDeps
  readonly #chunks: AnswerChunks
  /** For unfinished events. */
  readonly #memory: StreamMemory
  /** For text of the answer; the record may hold all of it. */
  readonly #textMemory: StreamMemory
  readonly #joined: JoinedStream
  readonly #clock: StageClock
  readonly #sinceSent: Stopwatch
  readonly #providerHash = new CollectedHash()
  readonly #clientHash = new CollectedHash()
  #keepAlive: NodeJS.Timeout | undefined
  /** Whether the commit point was reached. */
  #begun = false
  /** Whether the worker takes no more bytes until `drain`. */
  #full = false
  /** Whether reading of the provider is paused, so that its silence means nothing. */
  #isPaused = false
  #ending: StreamEnding | undefined
  #digests: Pick<StreamRecord, 'provider_sha256' | 'client_sha256'> | undefined

  /** To be called when the head of the response was sent, and before anything of the answer is read. */
  constructor(
    { spec, openWriter }: RequestedStream,
    answer: AnswerBody,
    response: WorkerBody,
    deps: WrittenStreamDeps,
  ) {
    this.#spec = spec
    this.#answer = answer
    this.#response = response
    this.#deps = deps
    const { head, include_reasoning: includeReasoning } = spec
    this.#memory = deps.memory.forStream(spec.owner)
    this.#textMemory = deps.memory.forStream(spec.owner)
    const takeMemory = (bytes: number) => this.#memory.take(bytes)
    const reading = { id: head.id, includeReasoning, takeMemory }
    const takeTextMemory = (bytes: number) => this.#textMemory.take(bytes)
    this.#chunks = new AnswerChunks(reading, openWriter(takeTextMemory))
    this.#clock = new StageClock(deps.now, () => this.#onSilence())
    this.#sinceSent = new Stopwatch(deps.now)
    const source = { pause: () => this.#pause(), resume: () => this.#resume() }
    this.#joined = deps.joiner.join((events) => this.#sendEvents(events), PAST_OPENING, source)
    response.on('drain', () => this.#onDrained())
    response.once('close', () => {
      this.#end({ kind: 'stopped' })
      if (!response.writableFinished) deps.disconnected()
    })
    // Errors need no handling here: `close` follows each of them.
    response.on('error', () => {})
    answer.on('data', (bytes) => this.#take(bytes))
    answer.once('end', () => this.#onEnd())
    answer.once('close', () => this.#end(this.#unlessFinished({ kind: 'lost' })))
  }

  /**
   * Ends the stream if it is open.
   * @returns the record that the stream is settled by
   */
  stop(): StreamRecord {
    this.#end({ kind: 'stopped' })
    return this.#record()
  }

  #record(): StreamRecord {
    const { finishReason, tally, providerResponseId } = this.#chunks
    if (this.#ending === undefined || this.#digests === undefined) {
      throw new Error('internal error: a stream that did not end')
    }
    return {
      ending: this.#ending,
      finish_reason: finishReason ?? null,
      tail: this.#chunks.tail,
      counts: tally.counts,
      provider_response_id: providerResponseId ?? null,
      ...this.#digests,
    }
  }

  #take(bytes: Buffer): void {
    if (this.#ending !== undefined) return
    this.#providerHash.update(bytes)
    this.#read(() => this.#chunks.push(bytes))
    if (this.#ending !== undefined || !this.#chunks.committed) return
    if (!this.#begun) this.#begin()
    const tailMs = tailLimitMs(this.#chunks)
    if (tailMs !== undefined) this.#clock.enter(tailMs)
    this.#timeProvider()
  }

  #timeProvider(): void {
    if (this.#full || this.#isPaused) this.#clock.pauseTimeout()
    else this.#clock.progress()
  }

  #pause(): void {
    this.#isPaused = true
    this.#deps.source.pause()
    this.#timeProvider()
  }

  #resume(): void {
    this.#isPaused = false
    this.#deps.source.resume()
    this.#timeProvider()
  }

  /** The commit point: until here the worker enforces the time limits and sends keep-alive comments. */
  #begin(): void {
    this.#begun = true
    this.#clock.enter(this.#spec.idle_ms)
    this.#scheduleKeepAlive(this.#spec.keep_alive_ms)
  }

  #onEnd(): void {
    this.#read(() => this.#chunks.end())
    this.#end({ kind: 'complete' })
  }

  /** Sends what a reading step returns; ends the stream when the step fails. */
  #read(step: () => Uint8Array): void {
    try {
      this.#push(step())
    } catch (error) {
      if (error instanceof BrokenStream) {
        // If nothing was sent yet, the worker can still try another route.
        if (this.#begun) this.#push(error.output)
        this.#end({ kind: 'broken', reason: error.reason })
      } else {
        this.#logUnexpected(error)
        this.#end(this.#unlessFinished({ kind: 'lost' }))
      }
    }
  }

  #logUnexpected(error: unknown): void {
    this.#deps.log('link_failed', { path: LINK_PATHS.streams, ...traceError(error) })
  }

  #push({ buffer, byteOffset, length }: Uint8Array): void {
    if (length > 0) this.#joined.push(Buffer.from(buffer, byteOffset, length))
  }

  #sendEvents(events: Uint8Array): void {
    this.#send(events)
    // The provider is paused, so silence from here on is not its fault.
    if (this.#full) this.#clock.pauseTimeout()
  }

  #send(events: Uint8Array): void {
    this.#clientHash.update(events)
    this.#sinceSent.restart()
    if (this.#response.destroyed || this.#response.write(events)) return
    this.#full = true
    this.#answer.pause()
  }

  #onDrained(): void {
    this.#full = false
    this.#sinceSent.restart()
    this.#timeProvider()
    this.#answer.resume()
  }

  #onSilence(): void {
    this.#end(this.#unlessFinished({ kind: 'idle' }))
  }

  /** Once its finish reason has arrived, an answer is complete, however its stream ends. */
  #unlessFinished(ending: StreamEnding): StreamEnding {
    return this.#chunks.finishReason === undefined ? ending : { kind: 'complete' }
  }

  #end(ending: StreamEnding): void {
    if (this.#ending !== undefined) return
    this.#ending = ending
    if (ending.kind !== 'broken') this.#finish()
    this.#clock.stop()
    this.#memory.giveBack()
    clearTimeout(this.#keepAlive)
    if (this.#response.destroyed) this.#joined.leave()
    else {
      this.#joined.end()
      this.#response.end()
    }
    if (!this.#answer.readableEnded) this.#answer.destroy()
    this.#digests = {
      provider_sha256: this.#providerHash.finish(),
      client_sha256: this.#clientHash.finish(),
    }
    const keptMs = this.#begun ? this.#spec.record_ms : UNSENT_KEPT_MS
    // A local constant, so that the callback keeps only this of the stream alive.
    const textMemory = this.#textMemory
    this.#deps.ended(this.#record(), keptMs, () => textMemory.giveBack())
  }

  /** Writes the events between the content and the last event of a complete answer. */
  #finish(): void {
    const { finishReason, tally } = this.#chunks
    if (finishReason === undefined) return
    try {
      const billed = usageAsBilled(tally.produced, this.#spec.billing)
      this.#push(this.#chunks.finish(billed))
    } catch (error) {
      if (error instanceof BrokenStream) this.#push(error.output)
      this.#ending = { kind: 'broken', reason: this.#reasonOf(error) }
    }
  }

  /**
   * Maps any failure to a reason, since the stream must end. The only unexpected error that can occur is text longer
   * than the longest possible string.
   */
  #reasonOf(error: unknown): BrokenReason {
    if (error instanceof BrokenStream) return error.reason
    this.#logUnexpected(error)
    return 'no_memory'
  }

  #scheduleKeepAlive(waitMs: number): void {
    this.#keepAlive = setTimeout(() => {
      const left = this.#spec.keep_alive_ms - this.#sinceSent.elapsed()
      if (left > 0) return this.#scheduleKeepAlive(left)
      if (!this.#full) this.#send(KEEP_ALIVE)
      return this.#scheduleKeepAlive(this.#spec.keep_alive_ms)
    }, waitMs)
  }
}
