import {
  isWithin,
  JoinWindow,
  lengthened,
  type WindowStream,
} from '../../worker/stream/join-window.ts'
import { AnswerOpening } from './answer-opening.ts'

/**
 * How many chunks a second are relayed. A worker spends about 70 us on each that it reads, whatever its size, and
 * everything between provider and client as much on one that is moved unread, so more of them would fall behind: see
 * docs/performance-findings.md, "Chunks that are joined".
 */
const CHUNKS_PER_SECOND = 6_000

/** With 64 streams, of frames that come every 20 ms two or three leave together. */
const lengthen = lengthened(4.2, 44)

/** Most bytes that one stream holds back. */
const MAX_HELD_BYTES = 64 * 1024

/** A stream with more than this in one window is read on: what a connection holds unread is limited. */
const MAX_RESTED_BYTES = 16 * 1024

/** The clock and the timer of a joiner. */
export interface JoinerDeps {
  /** Ms. */
  readonly now: () => number
  /** Calls `work` about every `ms` until the returned function is called; by default with a timer. */
  readonly every?: (ms: number, work: () => void) => () => void
  /** Calls `work` once everything has been read that can be read now. */
  readonly soon?: (work: () => void) => void
  /** For how many chunks a second there is time. */
  readonly chunksPerSecond?: number
}

/** One stream whose chunks are joined. */
export interface JoinedStream {
  readonly push: (chunk: Buffer) => void
  /** Sends what is held back and leaves; nothing may follow. */
  readonly end: () => void
  /** Leaves, and forgets what is held back. */
  readonly leave: () => void
}

/**
 * What the chunks of a stream are read from. It costs far less to read many of them at once than one after another, so
 * nothing is read of a stream whose next chunks would only wait here.
 */
export interface RestingSource {
  /** Reads nothing until `wake`. */
  rest(): void
  /** Reads again; may be called at any time. */
  wake(): void
}

/** Watches what a stream sends for its first output, before which nothing is joined. */
export interface Opening {
  readonly over: boolean
  readonly read: (chunk: Uint8Array) => void
}

interface Stream extends WindowStream {
  readonly send: (bytes: Buffer) => void
  readonly opening: Opening
  readonly source: RestingSource | undefined
  held: Buffer[]
  heldBytes: number
  sentAt: number
  /** Whether it has rested, and what is read of it in this moment leaves together. */
  gathers: boolean
}

function everyMs(ms: number, work: () => void): () => void {
  const timer = setInterval(work, ms)
  return () => clearInterval(timer)
}

/**
 * Joins chunks of many streams into fewer, larger ones, as many as the worker can relay. The window is the time that all
 * active streams take to send one chunk each. A chunk leaves at once if its stream has sent nothing for that long, and so
 * does everything up to the first output; otherwise it waits for the rest of the window. Once several chunks have left
 * together, their stream is not read until the window is over. Bytes and their order stay.
 */
export class ChunkJoiner {
  readonly #deps: Required<Omit<JoinerDeps, 'chunksPerSecond'>>
  readonly #window: JoinWindow
  readonly #holding = new Set<Stream>()
  /** Those that are not read, in the order in which they last sent: one that still sends what was read before is read on. */
  readonly #resting = new Set<Stream>()
  #timer: { readonly ms: number; readonly stop: () => void } | undefined
  #windowMs = 0

  constructor(deps: JoinerDeps) {
    const { now, every = everyMs, soon = setImmediate, chunksPerSecond = CHUNKS_PER_SECOND } = deps
    this.#deps = { now, every, soon }
    this.#window = new JoinWindow(now, chunksPerSecond, lengthen)
  }

  /** Adds a stream; `send` is called with its bytes, in order. */
  join(
    send: (bytes: Buffer) => void,
    opening: Opening = new AnswerOpening(),
    source?: RestingSource,
  ): JoinedStream {
    const stream: Stream = {
      send,
      opening,
      source,
      held: [],
      heldBytes: 0,
      sentAt: Number.NEGATIVE_INFINITY,
      arrivedAt: this.#deps.now(),
      gathers: false,
    }
    this.#window.enter(stream)
    return {
      push: (chunk) => this.#push(stream, chunk),
      end: () => {
        if (stream.held.length > 0) this.#release(stream, this.#deps.now())
        this.#drop(stream)
      },
      leave: () => this.#drop(stream),
    }
  }

  #push(stream: Stream, chunk: Buffer): void {
    const now = this.#deps.now()
    stream.arrivedAt = now
    if (this.#mayWait(stream, now, chunk.length)) return this.#hold(stream, chunk)
    if (stream.heldBytes === 0) {
      // The usual case while there are few streams: nothing is joined, no copy is made.
      stream.sentAt = now
      stream.send(chunk)
      this.#wake(stream)
    } else {
      stream.held.push(chunk)
      stream.heldBytes += chunk.length
      this.#release(stream, now)
    }
    if (!stream.opening.over) stream.opening.read(chunk)
  }

  #hold(stream: Stream, chunk: Buffer): void {
    stream.held.push(chunk)
    stream.heldBytes += chunk.length
    this.#holding.add(stream)
    this.#keepTime()
  }

  #mayWait(stream: Stream, now: number, bytes: number): boolean {
    const windowMs = this.#windowAt(now)
    return (
      (stream.gathers || isWithin(now - stream.sentAt, windowMs)) &&
      stream.heldBytes + bytes < MAX_HELD_BYTES &&
      stream.opening.over
    )
  }

  #windowAt(now: number): number {
    this.#windowMs = this.#window.at(now)
    return this.#windowMs
  }

  /** Looks for what is due about eight times in a window, as long as there is anything to wait for. */
  #keepTime(): void {
    const ms = Math.max(1, Math.ceil(this.#windowMs / 8))
    const isIdle = this.#holding.size + this.#resting.size === 0
    if (isIdle || isFarFrom(ms, this.#timer?.ms ?? ms)) {
      this.#timer?.stop()
      this.#timer = undefined
    }
    if (!isIdle) this.#timer ??= { ms, stop: this.#deps.every(ms, () => this.#look()) }
  }

  #look(): void {
    const now = this.#deps.now()
    const windowMs = this.#windowAt(now)
    this.#wakeDue(now, windowMs)
    for (const stream of this.#holding) {
      if (!stream.gathers && !isWithin(now - stream.sentAt, windowMs)) this.#release(stream, now)
    }
    this.#keepTime()
  }

  #wakeDue(now: number, windowMs: number): void {
    const woken: Stream[] = []
    for (const stream of this.#resting) {
      if (isWithin(now - stream.sentAt, windowMs)) break
      this.#wake(stream)
      stream.gathers = true
      woken.push(stream)
    }
    if (woken.length > 0) this.#deps.soon(() => this.#gathered(woken))
  }

  #gathered(streams: readonly Stream[]): void {
    const now = this.#deps.now()
    for (const stream of streams) {
      stream.gathers = false
      if (stream.held.length > 0) this.#release(stream, now)
    }
  }

  #release(stream: Stream, now: number): void {
    const { held, heldBytes } = stream
    const [first, ...rest] = held
    const bytes = rest.length === 0 ? first : Buffer.concat(held, heldBytes)
    this.#forget(stream)
    stream.sentAt = now
    if (bytes !== undefined) stream.send(bytes)
    const isFaster = rest.length > 0 && this.#windowMs > 0
    if (isFaster && heldBytes <= MAX_RESTED_BYTES) this.#rest(stream)
    else this.#wake(stream)
    this.#keepTime()
  }

  #rest(stream: Stream): void {
    // It may have left by what was sent.
    if (stream.source === undefined || !this.#window.has(stream)) return
    stream.source.rest()
    this.#resting.delete(stream)
    this.#resting.add(stream)
  }

  #wake(stream: Stream): void {
    if (this.#resting.delete(stream)) stream.source?.wake()
  }

  #drop(stream: Stream): void {
    this.#forget(stream)
    this.#wake(stream)
    this.#window.leave(stream)
    this.#keepTime()
  }

  #forget(stream: Stream): void {
    stream.held = []
    stream.heldBytes = 0
    this.#holding.delete(stream)
  }
}

function isFarFrom(ms: number, other: number): boolean {
  return ms > 2 * other || other > 2 * ms
}
