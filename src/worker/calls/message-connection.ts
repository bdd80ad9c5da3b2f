import {
  MAX_OPEN_CALLS,
  MESSAGE_KINDS,
  readFrame,
  writeFrames,
  type CallHead,
  type LinkMessage,
} from '../../protocol/link-messages.ts'
import type { BatchDeps } from '../batching/batcher.ts'
import { momentEnds } from '../batching/moment.ts'

/** What this needs of a WebSocket. */
export interface LinkSocket {
  binaryType: string
  accept(): void
  send(frame: Uint8Array): void
  close(): void
  addEventListener(event: 'message', listener: (message: { data: unknown }) => void): void
  addEventListener(event: 'close' | 'error', listener: () => void): void
}

/** Opens a connection in the current request. */
export type OpenSocket = () => Promise<LinkSocket>

/** A small call. */
export interface SmallCall {
  readonly head: CallHead
  readonly body: Uint8Array
}

/** An answer, or what became of it. */
export type Reply = Pick<LinkMessage, 'kind' | 'head' | 'body'>

/** The bytes of calls that are not answered, at most. */
const MAX_OPEN_BYTES = 16 * 1024 * 1024

/** Where a message was not sent for this long, no more are added, ms. */
const STILL_MS = 250

/** Seen to stand still for this long, the request that owns the connection counts as lost, ms. */
const LOST_MS = 10_000

/** Longer than any request may take for a whole answer. Requests that the runtime ended in the middle of a call never end it, ms. */
const MAX_CALL_MS = 7_200_000

/** The connection ended before the answer was there. */
export class ConnectionEnded extends Error {
  /** Whether the call may have left before that. */
  readonly wasSent: boolean

  constructor(wasSent: boolean) {
    super('the connection for messages ended')
    this.name = 'ConnectionEnded'
    this.wasSent = wasSent
  }
}

type State = 'opening' | 'open' | 'ended'

interface Waiting {
  readonly bytes: number
  readonly since: number
  readonly resolve: (reply: Reply) => void
  readonly reject: (error: Error) => void
}

/**
 * A connection over which many requests make their small calls. The runtime lets no request use a connection of another one. So it
 * belongs to the request that opened it, which is kept alive for it, and takes the calls of the others from a list; what one moment brings
 * leaves as one frame. Each call waits for a promise of its own request. When the connection ends, all its calls fail.
 */
export class MessageConnection {
  readonly #host: BatchDeps
  readonly #ended: (calls: number) => void
  readonly #waiting = new Map<number, Waiting>()
  #state: State = 'opening'
  #queue: LinkMessage[] = []
  /** Since when its request has something to do: to open it, or to send. */
  #dueSince: number
  /** When it was first seen that this took long. */
  #stillSince: number | undefined
  #openBytes = 0
  #lastId = 0
  #wake: (() => void) | undefined

  /** @param ended told when it was open and has ended, with the number of its open calls */
  constructor(host: BatchDeps, ended: (calls: number) => void) {
    this.#host = host
    this.#ended = ended
    this.#dueSince = host.now()
  }

  get state(): State {
    return this.#state
  }

  /** Whether it may be given a call of this request now. */
  takes({ body }: SmallCall): boolean {
    if (this.#standsStill() || this.#state !== 'open') return false
    this.#forgetOldest()
    return this.#waiting.size < MAX_OPEN_CALLS && this.#openBytes + body.length <= MAX_OPEN_BYTES
  }

  /** Opens the connection, which belongs to the current request, and serves it until it ends. Never rejects. */
  async run(open: OpenSocket): Promise<void> {
    try {
      const socket = await open()
      socket.binaryType = 'arraybuffer'
      socket.addEventListener('message', ({ data }) => this.#take(data, socket))
      socket.addEventListener('close', () => this.#end())
      socket.addEventListener('error', () => this.#end())
      socket.accept()
      if (this.#state === 'opening') this.#state = 'open'
      while (this.#isOpen()) {
        await this.#somethingToSend()
        if (this.#isOpen()) this.#send(socket)
      }
      socket.close()
    } catch {
      // Whatever it was, its calls fail, and the next ones go over HTTP.
    } finally {
      this.#end()
    }
  }

  /**
   * Makes a call of the current request, which keeps the time.
   * @throws ConnectionEnded when that happens before the answer is there; the signal's reason when it aborts
   */
  call({ head, body }: SmallCall, signal: AbortSignal | null | undefined): Promise<Reply> {
    const { promise, resolve, reject } = Promise.withResolvers<Reply>()
    const id = this.#nextId()
    const message = { kind: MESSAGE_KINDS.call, id, head: JSON.stringify(head), body }
    // Paths and headers are ASCII, so their characters are bytes.
    const bytes = message.head.length + body.length
    this.#waiting.set(id, { bytes, since: this.#host.now(), resolve, reject })
    this.#openBytes += bytes
    this.#push(message)
    signal?.addEventListener('abort', () => {
      if (this.#leave(id)) reject(signal.reason)
    })
    return promise
  }

  /** Tells the other side that nobody awaits an answer any more, unless it is there. A call that has not left yet never does. */
  #leave(id: number): boolean {
    if (this.#settled(id) === undefined) return false
    const leave = { kind: MESSAGE_KINDS.leave, id, head: '', body: new Uint8Array(0) }
    const unsent = this.#queue.findIndex((message) => message.id === id)
    // Something stays in its place, by which it is seen that nothing is sent.
    if (unsent >= 0) this.#queue[unsent] = leave
    else this.#push(leave)
    return true
  }

  /** Whether the request that owns the connection is late. That is counted from when it was first seen: after a pause of the machine it may not have had its turn yet. */
  #standsStill(): boolean {
    if (this.#state === 'open' && this.#queue.length === 0) return false
    const now = this.#host.now()
    if (Math.abs(now - this.#dueSince) <= STILL_MS) return false
    this.#stillSince ??= now
    if (Math.abs(now - this.#stillSince) >= LOST_MS) this.#end()
    return true
  }

  #forgetOldest(): void {
    for (const [id, { since }] of this.#waiting) {
      if (this.#host.now() - since > MAX_CALL_MS) this.#leave(id)
      return
    }
  }

  #nextId(): number {
    do this.#lastId = (this.#lastId + 1) >>> 0
    while (this.#waiting.has(this.#lastId))
    return this.#lastId
  }

  #push(message: LinkMessage): void {
    if (this.#state === 'ended') return
    if (this.#queue.push(message) > 1) return
    this.#dueSince = this.#host.now()
    this.#stillSince = undefined
    this.#wake?.()
    this.#wake = undefined
  }

  /** TypeScript takes the state for what it was before the wait. */
  #isOpen(): boolean {
    return this.#state === 'open'
  }

  async #somethingToSend(): Promise<void> {
    if (this.#queue.length === 0) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      await promise
    }
    await momentEnds()
  }

  #send(socket: LinkSocket): void {
    const messages = this.#queue
    this.#queue = []
    for (const frame of writeFrames(messages)) socket.send(frame)
  }

  #take(data: unknown, socket: LinkSocket): void {
    if (this.#state !== 'open') return
    try {
      if (!(data instanceof ArrayBuffer)) throw new TypeError('a frame of text')
      for (const { id, ...reply } of readFrame(new Uint8Array(data))) {
        // Whoever left has no answer.
        this.#settled(id)?.resolve(reply)
      }
    } catch {
      this.#end()
      socket.close()
    }
  }

  /** Takes a call from those that wait. */
  #settled(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) return undefined
    this.#waiting.delete(id)
    this.#openBytes -= waiting.bytes
    return waiting
  }

  #end(): void {
    if (this.#state === 'ended') return
    if (this.#state === 'open') this.#ended(this.#waiting.size)
    this.#state = 'ended'
    const unsent = new Set(this.#queue.map(({ id }) => id))
    this.#queue = []
    this.#wake?.()
    for (const [id, { reject }] of this.#waiting) reject(new ConnectionEnded(!unsent.has(id)))
    this.#waiting.clear()
  }
}
