import { ApiError } from '../http/errors.ts'

/** What waiting takes. */
export interface UploadLimiterTools {
  /** Ms. */
  readonly now: () => number
  readonly pause: (ms: number) => Promise<void>
}

/** A place in memory; `leave` gives it back, and doing so twice changes nothing. */
export interface UploadPermit {
  leave(): void
}

interface Ticket {
  readonly bytes: number
}

/**
 * How often a waiting upload looks whether its turn has come. It looks for itself, because in this runtime a request
 * had better not be woken by another one's doing.
 */
const POLL_INTERVAL_MS = 20

const MAX_WAIT_MS = 180_000
const RETRY_AFTER_SECONDS = 10

/**
 * Holds uploads to a budget of memory. Each takes room for its whole body before a byte of it is read; those that
 * do not fit wait, first come first served, while their bytes wait in the sockets.
 */
export class UploadMemoryLimiter {
  readonly #capacity: number
  readonly #waiting: Ticket[] = []
  #taken = 0

  /** @param capacity bytes, at least as many as one upload may take */
  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /** @throws ApiError `service_unavailable` when there is no room for too long */
  async enter(bytes: number, tools: UploadLimiterTools): Promise<UploadPermit> {
    const ticket: Ticket = { bytes }
    const giveUpAt = tools.now() + MAX_WAIT_MS
    this.#waiting.push(ticket)
    try {
      while (!this.#mayEnter(ticket)) {
        if (tools.now() >= giveUpAt) throw full()
        await tools.pause(POLL_INTERVAL_MS)
      }
      this.#taken += bytes
    } finally {
      this.#waiting.splice(this.#waiting.indexOf(ticket), 1)
    }
    return this.#pass(bytes)
  }

  #mayEnter(ticket: Ticket): boolean {
    return this.#waiting[0] === ticket && this.#taken + ticket.bytes <= this.#capacity
  }

  #pass(bytes: number): UploadPermit {
    let held = bytes
    return {
      leave: () => {
        this.#taken -= held
        held = 0
      },
    }
  }
}

function full(): ApiError {
  const message = 'Too many uploads are in progress. Try again in a few seconds.'
  return new ApiError('service_unavailable', message, { retryAfter: RETRY_AFTER_SECONDS })
}
