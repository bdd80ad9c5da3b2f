import { concatBytes } from '../../protocol/bytes.ts'
import type { After, DeadlineTimer } from '../batching/deadline-timer.ts'
import {
  isWithin,
  MAX_WINDOW_MS,
  type JoinWindow,
  type WindowStream,
} from '../stream/join-window.ts'
import type { ClientEnd } from './open-stream.ts'

/** Maximum number of bytes that one stream holds back. */
const MAX_HELD_BYTES = 16 * 1024

const NOTHING_TO_AWAIT: Promise<void> = Promise.resolve()

/**
 * Joins the events of one stream into fewer writes while many streams are relayed. Events are sent at once if the stream has
 * sent nothing for a window; otherwise they wait for the first chunk that is read after the window, and for a second window
 * at most. A timer that fires costs about as much as a read; while chunks come steadily no timer fires, because each is
 * stopped when its events are sent.
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
  /** The write that the timer began, until the client has taken it. */
  #sending: Promise<void> | undefined

  constructor(client: Pick<ClientEnd, 'send'>, window: JoinWindow, after: After) {
    this.#client = client
    this.#window = window
    this.#after = after
    this.#stream = { arrivedAt: window.now() }
    window.enter(this.#stream)
  }

  /**
   * Sends complete events now, or together with later ones.
   * @returns resolves when the next chunk may be read (at most one write is in flight then); undefined: at once
   * @throws unknown when the client has disconnected; also at the next call
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

  /** Stops joining. Events that are held back can still be sent with `sendNow`. */
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
      // `#sending` keeps the rejected promise, so that the next `send` reports it.
    }
  }

  #forget(): void {
    this.#timer?.stop()
    this.#timer = undefined
    this.#held = []
    this.#heldBytes = 0
  }
}
