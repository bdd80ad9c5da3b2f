import { MessageChannel, Worker } from 'node:worker_threads'
import type { LinkServerPlan } from '../../protocol/boot.ts'
import { traceError } from '../../protocol/error-trace.ts'
import { giveBackOf, type TakenByThread } from '../egress/event-memory.ts'
import type { ReceiptKeyParts } from '../keys/receipt-key.ts'
import type { LinkReply } from '../link-server/reply.ts'
import type { Log } from '../log.ts'
import type { ProviderProofs } from '../proofs.ts'
import { FactTeller, type FactFeed } from './fact-channel.ts'
import type { Facts } from './facts.ts'
import { BeatWatch, newBeats, type Beats, type Heartbeat } from './heartbeat.ts'
import type { CarrierData, FromCarrier, Question, ToCarrier } from './messages.ts'

export interface CarrierHostDeps {
  readonly link: LinkServerPlan
  readonly key: ReceiptKeyParts
  readonly eventMemory: TakenByThread
  readonly place: number
  readonly maxStreams: number
  /** The current facts. */
  readonly facts: () => Facts
  readonly proofs: Pick<ProviderProofs, 'distrust'>
  /** Never rejects. */
  readonly answer: (question: Question) => Promise<LinkReply | undefined>
  readonly log: Log
  readonly heartbeat: Heartbeat
  /** Called when the carrier has ended, by itself or because it was frozen, and when a new one listens. */
  readonly onLost: (why: 'ended' | 'stood still') => void
  readonly onRestored: () => void
  /** Milliseconds that never go back. */
  readonly monotonic: () => number
  readonly program: URL
}

const FIRST_RESTART_MS = 200
const MAX_RESTART_MS = 30_000
/** A thread that ended longer ago than this does not delay a restart, ms. */
const CRASH_WINDOW_MS = 60_000

/**
 * Runs the thread of one carrier. When the thread ends, by an error or because memory ran out, a new one is started on
 * the same port; each further end within a minute doubles the wait. Until then the carrier's workers cannot reach the
 * daemon. A frozen thread is terminated.
 */
export class CarrierHost {
  readonly #deps: CarrierHostDeps
  #thread: Worker | undefined
  #teller: FactTeller | undefined
  #port: number
  #ends: readonly number[] = []
  #timer: NodeJS.Timeout | undefined
  #looks: NodeJS.Timeout | undefined
  #stoodStill = false
  #closed = false

  constructor(deps: CarrierHostDeps) {
    this.#deps = deps
    this.#port = deps.link.port
  }

  /** The port that the carrier listens on, once it was started. */
  get port(): number {
    return this.#port
  }

  /**
   * Resolves when the carrier listens.
   * @throws Error when the thread ends before that
   */
  async start(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const beats = newBeats()
    const thread = this.#open(beats)
    let hasListened = false
    thread.on('message', (message: FromCarrier) => {
      if (message.type !== 'listening') return this.#receive(thread, message)
      this.#port = message.port
      hasListened = true
      this.#watch(beats)
      return resolve()
    })
    thread.once('exit', () => {
      if (this.#thread === thread) this.#forget()
      // If the main thread was busy, `listening` and `exit` are reported in the same turn of the event loop.
      if (hasListened) this.#onEnd()
      else reject(new Error('a carrier ended before it listened'))
    })
    await promise
  }

  /** Makes the carrier use these facts from now on. */
  tell(facts: Facts): void {
    this.#teller?.tell(facts)
  }

  /** Terminates a thread that no longer works; a new one is started. */
  end(): void {
    void this.#thread?.terminate()
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    clearInterval(this.#looks)
    await this.#thread?.terminate()
  }

  #watch(beats: Beats): void {
    const { heartbeat, monotonic } = this.#deps
    let watch = new BeatWatch(beats, heartbeat, monotonic())
    this.#stoodStill = false
    this.#looks = setInterval(() => {
      if (!watch.standsStill(monotonic())) return
      // This ends the daemon's process; the supervisor restarts it.
      if (this.#stoodStill) throw new Error('a carrier that stands still cannot be ended')
      this.#stoodStill = true
      watch = new BeatWatch(beats, heartbeat, monotonic())
      this.end()
    }, heartbeat.everyMs)
    this.#looks.unref()
  }

  #open(beats: Beats): Worker {
    const { link, facts, program, log, ...deps } = this.#deps
    const { port1, port2 } = new MessageChannel()
    const sent = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
    const feed = (port: FactFeed['port']): FactFeed => ({ port, sent })
    const teller = new FactTeller(feed(port1))
    // Before the thread starts, so that it never listens without facts.
    teller.tell(facts())
    const data: CarrierData = {
      link: { ...link, port: this.#port },
      key: deps.key,
      facts: feed(port2),
      eventMemory: deps.eventMemory,
      place: deps.place,
      maxStreams: deps.maxStreams,
      beats,
    }
    const thread = new Worker(program, {
      workerData: data,
      transferList: [port2],
      // A thread gets neither the daemon's secrets nor its output streams.
      env: {},
      stdout: true,
      stderr: true,
    })
    thread.stdout.resume()
    thread.stderr.resume()
    // Only a trace is logged: the error's message may contain prompts.
    thread.on('error', (error) => log('unexpected_error', traceError(error)))
    this.#thread = thread
    this.#teller = teller
    return thread
  }

  #forget(): void {
    clearInterval(this.#looks)
    giveBackOf(this.#deps.eventMemory, this.#deps.place)
    this.#teller?.close()
    this.#teller = undefined
    this.#thread = undefined
  }

  #onEnd(): void {
    if (this.#closed) return
    this.#deps.onLost(this.#stoodStill ? 'stood still' : 'ended')
    this.#restartLater()
  }

  #restartLater(): void {
    const now = this.#deps.monotonic()
    this.#ends = [...this.#ends.filter((at) => now - at < CRASH_WINDOW_MS), now]
    const wait = Math.min(FIRST_RESTART_MS * 2 ** (this.#ends.length - 1), MAX_RESTART_MS)
    this.#timer = setTimeout(() => void this.#restart(), wait)
  }

  async #restart(): Promise<void> {
    try {
      await this.start()
      if (this.#thread !== undefined) this.#deps.onRestored()
    } catch {
      if (!this.#closed) this.#restartLater()
    }
  }

  #receive(thread: Worker, message: Exclude<FromCarrier, { type: 'listening' }>): void {
    const { proofs, log, answer } = this.#deps
    if (message.type === 'log') log(message.event, message.fields)
    else if (message.type === 'distrust') proofs.distrust(message.provider, message.evidence)
    else {
      const { id, question } = message
      const send = (reply: LinkReply | undefined) =>
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
        thread.postMessage({ id, reply } satisfies ToCarrier)
      void answer(question).then(send)
    }
  }
}
