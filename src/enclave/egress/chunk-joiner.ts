import { AnswerOpening } from './answer-opening.ts'

/**
 * How many chunks a second are relayed. A worker spends about 70 us on each that it reads, whatever its size, and
 * everything between provider and client as much on one that is moved unread, so more of them would fall behind: see
 * docs/performance.md, "Chunks that are joined".
 */
const CHUNKS_PER_SECOND = 6_000

/** Up to this long a window is so many times longer: nobody notices that, and fewer chunks cost less. */
const SHORT_WINDOW_MS = 25
const SHORT_WINDOW_FACTOR = 2.3

/** Below this nothing is joined: the timer is no finer, and so few streams are no load. */
const MIN_WINDOW_MS = 4

/** A stream is never silent for longer than this because of joining. */
const MAX_WINDOW_MS = 250

/** A stream counts as active for this long after its last chunk. */
const ACTIVE_MS = 1_000

/** How often active streams are counted. */
const COUNT_INTERVAL_MS = 100

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

interface Stream {
  readonly send: (bytes: Buffer) => void
  readonly opening: Opening
  readonly source: RestingSource | undefined
  held: Buffer[]
  heldBytes: number
  sentAt: number
  arrivedAt: number
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
  readonly #deps: Required<JoinerDeps>
  readonly #streams = new Set<Stream>()
  readonly #holding = new Set<Stream>()
  /** Those that are not read, the one that rests longest first. */
  readonly #resting = new Set<Stream>()
  #timer: { readonly ms: number; readonly stop: () => void } | undefined
  #windowMs = 0
  #countedAt = Number.NEGATIVE_INFINITY

  constructor(deps: JoinerDeps) {
    this.#deps = { every: everyMs, soon: setImmediate, chunksPerSecond: CHUNKS_PER_SECOND, ...deps }
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
    this.#streams.add(stream)
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
    const windowMs = this.#window(now)
    return (
      (stream.gathers || isWithin(now - stream.sentAt, windowMs)) &&
      stream.heldBytes + bytes < MAX_HELD_BYTES &&
      stream.opening.over
    )
  }

  #window(now: number): number {
    if (isWithin(now - this.#countedAt, COUNT_INTERVAL_MS)) return this.#windowMs
    this.#countedAt = now
    let active = 0
    for (const { arrivedAt } of this.#streams) if (isWithin(now - arrivedAt, ACTIVE_MS)) active += 1
    this.#windowMs = windowOf(active, this.#deps.chunksPerSecond)
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
    const windowMs = this.#window(now)
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
    this.#keepTime()
  }

  #rest(stream: Stream): void {
    // It may have left by what was sent.
    if (stream.source === undefined || !this.#streams.has(stream)) return
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
    this.#streams.delete(stream)
    this.#keepTime()
  }

  #forget(stream: Stream): void {
    stream.held = []
    stream.heldBytes = 0
    this.#holding.delete(stream)
  }
}

function windowOf(active: number, chunksPerSecond: number): number {
  const ms = (active * 1_000) / chunksPerSecond
  if (ms < MIN_WINDOW_MS) return 0
  return Math.min(MAX_WINDOW_MS, Math.max(ms, Math.min(SHORT_WINDOW_MS, ms * SHORT_WINDOW_FACTOR)))
}

/** Whether an elapsed time is below a limit; a clock that was set back makes it negative, and the wait is over. */
function isWithin(elapsedMs: number, limitMs: number): boolean {
  return elapsedMs >= 0 && elapsedMs < limitMs
}

function isFarFrom(ms: number, other: number): boolean {
  return ms > 2 * other || other > 2 * ms
}
