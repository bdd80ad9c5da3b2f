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
import { microtasksEnd } from '../batching/microtasks.ts'
import type { OwnSignal } from './own-signal.ts'
import { LATE_MS, Outbox } from './outbox.ts'
import { Watch } from './watch.ts'

/** The part of a WebSocket that this module uses. */
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

/** An answer, or another message that ends the call. */
export type Reply = Pick<LinkMessage, 'kind' | 'head' | 'body'>

/** Maximum number of bytes of unanswered calls. */
const MAX_OPEN_BYTES = 16 * 1024 * 1024

/** When the owning request has not run for this long, its unsent calls fail, so that their callers use another way, ms. */
const GIVE_BACK_MS = 250

/** When it has not run for this long, the connection counts as lost, and with it the answers to sent calls, ms. */
const LOST_MS = 10_000

/**
 * Longer than any request may wait for a whole answer, ms. Calls of requests that the runtime ended are never settled and
 * are removed after this time.
 */
const MAX_CALL_MS = 7_200_000

/** The connection ended before the answer arrived, or never sent the call. */
export class ConnectionEnded extends Error {
  /** Whether the call may have been sent before that. */
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
 * A connection over which many requests make their small calls. The runtime lets no request use a connection of another one.
 * So the connection belongs to the request that opened it, which is kept alive for it and sends the calls of the others from
 * a queue; calls that are queued at the same time are sent as one frame. Each call awaits a promise of its own request. When
 * the connection ends, all its calls fail.
 *
 * The runtime gives no notice when it ends the owning request. This shows in calls that are not sent: then no call is added,
 * and the queued ones fail within a second as never sent, so that their callers can use another way.
 */
export class MessageConnection {
  readonly #host: BatchDeps
  readonly #ended: (calls: number) => void
  readonly #waiting = new BriefMap<number, Waiting>()
  readonly #outbox: Outbox
  /** Runs until everything is sent, because there may be no later call that would notice a dead owner. */
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

  /** Whether the connection can take a call of this request now. */
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
      // Whatever the error was, the calls fail, and later ones go over HTTP.
    } finally {
      this.#end()
    }
  }

  /**
   * Makes a call of the current request, which limits its time by the signal.
   * @throws ConnectionEnded when the connection ends before the answer arrives
   * @throws unknown the signal's reason when it aborts
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
   * Tells the other side that an answer is no longer awaited, unless it has arrived. A call that was not sent is never sent.
   * @returns the caller that waited for the answer, if any
   */
  #leave(id: number): Waiting | undefined {
    const waiting = this.#settled(id)
    if (waiting === undefined) return undefined
    const leave = { kind: MESSAGE_KINDS.cancel, id, head: '', body: new Uint8Array(0) }
    // The message keeps its place in the queue: while it is there, it shows that nothing is sent.
    if (!this.#outbox.replace(id, leave)) this.#push(leave)
    return waiting
  }

  /** Whether the request that owns the connection does not run. Its unsent calls are soon taken away from it. */
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

  /** A separate function, because TypeScript would assume that the state does not change during a wait. */
  #isOpen(): boolean {
    return this.#state === 'open'
  }

  async #somethingToSend(): Promise<void> {
    if (this.#outbox.isEmpty) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      await promise
    }
    await microtasksEnd()
  }

  #send(socket: LinkSocket): void {
    for (const frame of writeFrames(this.#outbox.takeAll())) socket.send(frame)
  }

  #take(data: unknown, socket: LinkSocket): void {
    if (this.#state !== 'open') return
    try {
      if (!(data instanceof ArrayBuffer)) throw new TypeError('a frame of text')
      for (const { id, ...reply } of readFrame(new Uint8Array(data))) {
        // A call that was given up is no longer in the map.
        this.#settled(id)?.resolve(reply)
      }
    } catch {
      this.#end()
      socket.close()
    }
  }

  /** Removes a call from the waiting ones. */
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
