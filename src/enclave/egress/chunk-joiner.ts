import {
  isWithin,
  JoinWindow,
  lengthened,
  type WindowStream,
} from '../../worker/stream/join-window.ts'
import { AnswerOpening } from './answer-opening.ts'

/**
 * How many chunks per second are relayed. A worker spends about 70 us on each chunk that it reads, whatever its size,
 * and all other parts between provider and client together spend as much on a chunk that is passed on unread. More
 * chunks per second would build up a backlog: see docs/performance-findings.md, "Chunks that are joined".
 */
const CHUNKS_PER_SECOND = 6_000

/** With 64 streams whose frames arrive every 20 ms, this joins two or three frames into one chunk. */
const lengthen = lengthened(4.2, 44)

/** Most bytes of one stream that are held back. */
const MAX_HELD_BYTES = 64 * 1024

/**
 * A stream that receives more than this in one window keeps being read: a connection can hold only a limited number of
 * unread bytes.
 */
const MAX_PAUSED_BYTES = 16 * 1024

/** The clock and the timer of a joiner. */
export interface JoinerDeps {
  /** Ms. */
  readonly now: () => number
  /**
   * Calls `work` about every `ms` milliseconds until the returned function is called; by default with `setInterval`.
   */
  readonly every?: (ms: number, work: () => void) => () => void
  /** Calls `work` once everything that can be read now has been read; by default `setImmediate`. */
  readonly soon?: (work: () => void) => void
  /** How many chunks per second may be sent, over all streams. */
  readonly chunksPerSecond?: number
}

/** One stream whose chunks are joined. */
export interface JoinedStream {
  readonly push: (chunk: Buffer) => void
  /** Sends what is held back and removes the stream; nothing may be pushed after this. */
  readonly end: () => void
  /** Removes the stream and discards what is held back. */
  readonly leave: () => void
}

/**
 * The source that the chunks of a stream are read from. One read of many chunks costs far less than many reads, so a
 * stream whose next chunks would only wait in the joiner is not read.
 */
export interface PausableSource {
  /** Pauses reading until `resume`. */
  pause(): void
  /** Resumes reading; may be called at any time. */
  resume(): void
}

/** Watches a stream for its first output. Chunks before it are never joined. */
export interface Opening {
  readonly over: boolean
  readonly read: (chunk: Uint8Array) => void
}

interface Stream extends WindowStream {
  readonly send: (bytes: Buffer) => void
  readonly opening: Opening
  readonly source: PausableSource | undefined
  held: Buffer[]
  heldBytes: number
  sentAt: number
  /**
   * Whether the stream has just been resumed: everything that is read of it in this turn of the event loop is joined
   * into one chunk.
   */
  gathers: boolean
}

function everyMs(ms: number, work: () => void): () => void {
  const timer = setInterval(work, ms)
  return () => clearInterval(timer)
}

/**
 * Joins the chunks of many streams into fewer, larger ones, as many as the worker can relay. The window is the time in
 * which each active stream may send one chunk. A chunk is sent at once if its stream has sent nothing for one window,
 * or if it belongs to the part up to the first output; otherwise it waits for the rest of the window. Once several
 * chunks were sent as one, their stream is not read until the window is over. Bytes and their order are unchanged.
 */
export class ChunkJoiner {
  readonly #deps: Required<Omit<JoinerDeps, 'chunksPerSecond'>>
  readonly #window: JoinWindow
  readonly #holding = new Set<Stream>()
  /**
   * Streams that are paused, in the order in which they last sent. A paused stream that still sends, because its bytes
   * were already read, is moved to the end.
   */
  readonly #paused = new Set<Stream>()
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
    source?: PausableSource,
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
      // The usual case with few streams: nothing is joined, so nothing is copied.
      stream.sentAt = now
      stream.send(chunk)
      this.#resume(stream)
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

  /**
   * Starts, adjusts or stops the timer, which looks for due chunks about eight times per window while any stream waits.
   */
  #keepTime(): void {
    const ms = Math.max(1, Math.ceil(this.#windowMs / 8))
    const isIdle = this.#holding.size + this.#paused.size === 0
    if (isIdle || isFarFrom(ms, this.#timer?.ms ?? ms)) {
      this.#timer?.stop()
      this.#timer = undefined
    }
    if (!isIdle) this.#timer ??= { ms, stop: this.#deps.every(ms, () => this.#look()) }
  }

  #look(): void {
    const now = this.#deps.now()
    const windowMs = this.#windowAt(now)
    this.#resumeDue(now, windowMs)
    for (const stream of this.#holding) {
      if (!stream.gathers && !isWithin(now - stream.sentAt, windowMs)) this.#release(stream, now)
    }
    this.#keepTime()
  }

  #resumeDue(now: number, windowMs: number): void {
    const woken: Stream[] = []
    for (const stream of this.#paused) {
      if (isWithin(now - stream.sentAt, windowMs)) break
      this.#resume(stream)
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
    if (isFaster && heldBytes <= MAX_PAUSED_BYTES) this.#pause(stream)
    else this.#resume(stream)
    this.#keepTime()
  }

  #pause(stream: Stream): void {
    // `send` may have removed the stream.
    if (stream.source === undefined || !this.#window.has(stream)) return
    stream.source.pause()
    this.#paused.delete(stream)
    this.#paused.add(stream)
  }

  #resume(stream: Stream): void {
    if (this.#paused.delete(stream)) stream.source?.resume()
  }

  #drop(stream: Stream): void {
    this.#forget(stream)
    this.#resume(stream)
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
