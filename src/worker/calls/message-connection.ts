import { BriefMap } from '../../protocol/brief-map.ts'
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
import type { OwnSignal } from './own-signal.ts'
import { LATE_MS, Outbox } from './outbox.ts'
import { Watch } from './watch.ts'

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

/** Once the owning request has been late for this long, the calls that it has not sent are made in another way, ms. */
const GIVE_BACK_MS = 250

/** Once it has been late for this long, the connection counts as lost, and with it the answers to what was sent, ms. */
const LOST_MS = 10_000

/** Longer than any request may take for a whole answer. Requests that the runtime ended in the middle of a call never end it, ms. */
const MAX_CALL_MS = 7_200_000

/** The connection ended before the answer was there, or never sent the call. */
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
  readonly reject: (reason: unknown) => void
}

/**
 * A connection over which many requests make their small calls. The runtime lets no request use a connection of another one. So it
 * belongs to the request that opened it, which is kept alive for it, and takes the calls of the others from a list; calls of the same
 * moment are sent as one frame. Each call waits for a promise of its own request. When the connection ends, all its calls fail.
 *
 * The runtime gives no notice when it ends the request that owns the connection. It shows in calls that are not sent: then no call is
 * added, and those that wait fail within a second as never sent, so that they can be made in another way.
 */
export class MessageConnection {
  readonly #host: BatchDeps
  readonly #ended: (calls: number) => void
  readonly #waiting = new BriefMap<number, Waiting>()
  readonly #outbox: Outbox
  /** Until everything is sent: no other call may come that would notice that nothing is. */
  readonly #watch: Watch
  #state: State = 'opening'
  #openBytes = 0
  #lastId = 0
  #wake: (() => void) | undefined

  /** @param ended called when an open connection has ended, with the number of its open calls */
  constructor(host: BatchDeps, ended: (calls: number) => void) {
    this.#host = host
    this.#ended = ended
    this.#outbox = new Outbox(host.now)
    this.#watch = new Watch(host, LATE_MS, () => {
      this.#standsStill()
      return !this.#outbox.isEmpty
    })
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
  call({ head, body }: SmallCall, signal: OwnSignal | undefined): Promise<Reply> {
    if (this.#state === 'ended') return Promise.reject(new ConnectionEnded(false))
    const { promise, resolve, reject } = Promise.withResolvers<Reply>()
    const id = this.#nextId()
    const message = { kind: MESSAGE_KINDS.call, id, head: JSON.stringify(head), body }
    // Paths and headers are ASCII, so their characters are bytes.
    const bytes = message.head.length + body.length
    this.#waiting.add(id, { bytes, since: this.#host.now(), resolve, reject })
    this.#openBytes += bytes
    this.#push(message)
    signal?.onAbort(() => this.#leave(id)?.reject(signal.reason))
    return promise
  }

  /**
   * Tells the other side that an answer is no longer awaited, unless it has come. A call that has not been sent never is.
   * @returns what waited for it
   */
  #leave(id: number): Waiting | undefined {
    const waiting = this.#settled(id)
    if (waiting === undefined) return undefined
    const leave = { kind: MESSAGE_KINDS.leave, id, head: '', body: new Uint8Array(0) }
    // A message stays in its place: as long as it does, it shows that nothing is sent.
    if (!this.#outbox.replace(id, leave)) this.#push(leave)
    return waiting
  }

  /** Whether the request that owns the connection is late. What it has not sent is not left to it for long. */
  #standsStill(): boolean {
    if (this.#state === 'open' && this.#outbox.isEmpty) return false
    const lateMs = this.#outbox.seenLateMs()
    if (lateMs === undefined) return false
    if (lateMs >= LOST_MS) this.#end()
    else if (lateMs >= GIVE_BACK_MS) this.#giveBackUnsent()
    return true
  }

  #giveBackUnsent(): void {
    for (const id of this.#outbox.ids()) this.#leave(id)?.reject(new ConnectionEnded(false))
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
    if (!this.#outbox.push(message)) return
    this.#wake?.()
    this.#wake = undefined
    this.#watch.begin()
  }

  /** TypeScript takes the state for what it was before the wait. */
  #isOpen(): boolean {
    return this.#state === 'open'
  }

  async #somethingToSend(): Promise<void> {
    if (this.#outbox.isEmpty) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      await promise
    }
    await momentEnds()
  }

  #send(socket: LinkSocket): void {
    for (const frame of writeFrames(this.#outbox.takeAll())) socket.send(frame)
  }

  #take(data: unknown, socket: LinkSocket): void {
    if (this.#state !== 'open') return
    try {
      if (!(data instanceof ArrayBuffer)) throw new TypeError('a frame of text')
      for (const { id, ...reply } of readFrame(new Uint8Array(data))) {
        // A call that was given up is not in the list any more.
        this.#settled(id)?.resolve(reply)
      }
    } catch {
      this.#end()
      socket.close()
    }
  }

  /** Takes a call from those that wait. */
  #settled(id: number): Waiting | undefined {
    const waiting = this.#waiting.take(id)
    if (waiting !== undefined) this.#openBytes -= waiting.bytes
    return waiting
  }

  #end(): void {
    if (this.#state === 'ended') return
    if (this.#state === 'open') this.#ended(this.#waiting.size)
    this.#state = 'ended'
    const unsent = new Set(this.#outbox.takeAll().map(({ id }) => id))
    this.#wake?.()
    for (const [id] of this.#waiting)
      this.#settled(id)?.reject(new ConnectionEnded(!unsent.has(id)))
  }
}
