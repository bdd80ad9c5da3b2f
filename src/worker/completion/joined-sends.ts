import { concatBytes } from '../../protocol/bytes.ts'
import type { After, DeadlineTimer } from '../batching/deadline-timer.ts'
import {
  isWithin,
  MAX_WINDOW_MS,
  type JoinWindow,
  type WindowStream,
} from '../stream/join-window.ts'
import type { ClientEnd } from './open-stream.ts'

/** Most bytes that one stream holds back. */
const MAX_HELD_BYTES = 16 * 1024

const NOTHING_TO_AWAIT: Promise<void> = Promise.resolve()

/**
 * Joins the events of one stream while many are relayed. They leave at once if the stream has sent nothing for a window; else
 * they wait for the first chunk that is read after it, and at most for a second window. A timer that fires costs about as much as
 * a read, and while chunks come steadily none fires: each ends with what it was for.
 */
export class JoinedSends {
  readonly #client: Pick<ClientEnd, 'send'>
  readonly #window: JoinWindow
  readonly #after: After
  readonly #stream: WindowStream
  #sentAt = Number.NEGATIVE_INFINITY
  #held: Uint8Array[] = []
  #heldBytes = 0
  #timer: DeadlineTimer | undefined
  /** What the timer has sent, until the client has taken it. */
  #sending: Promise<void> | undefined

  constructor(client: Pick<ClientEnd, 'send'>, window: JoinWindow, after: After) {
    this.#client = client
    this.#window = window
    this.#after = after
    this.#stream = { arrivedAt: window.now() }
    window.enter(this.#stream)
  }

  /**
   * Sends complete events now or together with those that follow. Resolves when the next chunk may be read: at most one write is
   * under way meanwhile; undefined for at once.
   * @throws unknown when the client has left, also at the call after
   */
  send(events: Uint8Array): Promise<void> | undefined {
    const now = this.#window.now()
    this.#stream.arrivedAt = now
    const windowMs = this.#window.at(now)
    const mayWait =
      isWithin(now - this.#sentAt, windowMs) && this.#heldBytes + events.length <= MAX_HELD_BYTES
    if (!mayWait) return this.sendNow(events)
    if (events.length > 0) this.#hold(events, this.#sentAt + 2 * windowMs - now)
    return this.#sending
  }

  /** Sends these events and all that were held back. Resolves when the client has taken them. */
  sendNow(events?: Uint8Array): Promise<void> {
    if (events !== undefined && events.length > 0) this.#held.push(events)
    const [first] = this.#held
    if (first === undefined) return this.#sending ?? NOTHING_TO_AWAIT
    const bytes = this.#held.length === 1 ? first : concatBytes(...this.#held)
    this.#forget()
    this.#sentAt = this.#window.now()
    return this.#client.send(bytes)
  }

  /** Nothing more is to be joined. What is held back is still sent with `sendNow`. */
  leave(): void {
    this.#timer?.stop()
    this.#window.leave(this.#stream)
  }

  #hold(events: Uint8Array, ms: number): void {
    this.#held.push(events)
    this.#heldBytes += events.length
    this.#timer ??= this.#after(Math.min(MAX_WINDOW_MS, ms), () => void this.#sendHeld())
  }

  async #sendHeld(): Promise<void> {
    const sending = this.sendNow()
    this.#sending = sending
    try {
      await sending
      if (this.#sending === sending) this.#sending = undefined
    } catch {
      // It stays, so that the next call learns of it.
    }
  }

  #forget(): void {
    this.#timer?.stop()
    this.#timer = undefined
    this.#held = []
    this.#heldBytes = 0
  }
}
