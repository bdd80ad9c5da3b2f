import { AnswerOpening } from './answer-opening.ts'

/**
 * How many chunks a second are relayed. A worker spends about 70 us on each that it reads, whatever its size, and
 * everything between provider and client as much on one that is moved unread, so more of them would fall behind: see
 * docs/performance.md, "Chunks that are joined".
 */
const CHUNKS_PER_SECOND = 6_000

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

/** The clock and the timer of a joiner. */
export interface JoinerDeps {
  /** Ms. */
  readonly now: () => number
  /** Calls `work` about every `ms` until the returned function is called; by default with a timer. */
  readonly every?: (ms: number, work: () => void) => () => void
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

/** Watches what a stream sends for its first output, before which nothing is joined. */
export interface Opening {
  readonly over: boolean
  readonly read: (chunk: Uint8Array) => void
}

interface Stream {
  readonly send: (bytes: Buffer) => void
  readonly opening: Opening
  held: Buffer[]
  heldBytes: number
  sentAt: number
  arrivedAt: number
}

function everyMs(ms: number, work: () => void): () => void {
  const timer = setInterval(work, ms)
  return () => clearInterval(timer)
}

/**
 * Joins chunks of many streams into fewer, larger ones, as many as the worker can relay. The window is the time that all
 * active streams take to send one chunk each. A chunk leaves at once if its stream has sent nothing for that long, and so
 * does everything up to the first output; otherwise it waits for the rest of the window. Bytes and their order stay.
 */
export class ChunkJoiner {
  readonly #deps: Required<JoinerDeps>
  readonly #streams = new Set<Stream>()
  readonly #holding = new Set<Stream>()
  #stopTimer: (() => void) | undefined
  #windowMs = 0
  #countedAt = Number.NEGATIVE_INFINITY

  constructor(deps: JoinerDeps) {
    this.#deps = { every: everyMs, chunksPerSecond: CHUNKS_PER_SECOND, ...deps }
  }

  /** Adds a stream; `send` is called with its bytes, in order. */
  join(send: (bytes: Buffer) => void, opening: Opening = new AnswerOpening()): JoinedStream {
    const stream: Stream = {
      send,
      opening,
      held: [],
      heldBytes: 0,
      sentAt: Number.NEGATIVE_INFINITY,
      arrivedAt: this.#deps.now(),
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
    this.#stopTimer ??= this.#deps.every(Math.ceil(this.#windowMs / 8), () => this.#releaseDue())
  }

  #mayWait(stream: Stream, now: number, bytes: number): boolean {
    const windowMs = this.#window(now)
    return (
      windowMs >= MIN_WINDOW_MS &&
      isWithin(now - stream.sentAt, windowMs) &&
      stream.heldBytes + bytes < MAX_HELD_BYTES &&
      stream.opening.over
    )
  }

  #window(now: number): number {
    if (isWithin(now - this.#countedAt, COUNT_INTERVAL_MS)) return this.#windowMs
    this.#countedAt = now
    let active = 0
    for (const { arrivedAt } of this.#streams) if (isWithin(now - arrivedAt, ACTIVE_MS)) active += 1
    this.#windowMs = Math.min(MAX_WINDOW_MS, (active * 1_000) / this.#deps.chunksPerSecond)
    return this.#windowMs
  }

  #releaseDue(): void {
    const now = this.#deps.now()
    const windowMs = this.#window(now)
    for (const stream of this.#holding) {
      if (!isWithin(now - stream.sentAt, windowMs)) this.#release(stream, now)
    }
  }

  #release(stream: Stream, now: number): void {
    const [first, ...rest] = stream.held
    const bytes = rest.length === 0 ? first : Buffer.concat(stream.held, stream.heldBytes)
    this.#forget(stream)
    stream.sentAt = now
    if (bytes !== undefined) stream.send(bytes)
  }

  #drop(stream: Stream): void {
    this.#forget(stream)
    this.#streams.delete(stream)
  }

  #forget(stream: Stream): void {
    stream.held = []
    stream.heldBytes = 0
    this.#holding.delete(stream)
    if (this.#holding.size > 0) return
    this.#stopTimer?.()
    this.#stopTimer = undefined
  }
}

/** Whether an elapsed time is below a limit; a clock that was set back makes it negative, and the wait is over. */
function isWithin(elapsedMs: number, limitMs: number): boolean {
  return elapsedMs >= 0 && elapsedMs < limitMs
}
