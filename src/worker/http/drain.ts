/** Maximum size (bytes) and duration (ms) of reading an unwanted body, so that its client reads the answer. */
const DRAINED_BYTES = 32 * 1024 * 1024
const DRAINED_MS = 5_000

/** Maximum number of bodies drained at a time: clients without a key can cause this work, so it must be bounded. */
const MAX_CONCURRENT_DRAINS = 128

/**
 * Reads and discards the rest of unwanted bodies. A connection that is closed while its client still sends is reset,
 * and most clients then report a broken pipe instead of the error in the answer.
 */
export class Drains {
  #open = 0

  /** Resolves when the body has ended, or enough of it has been read. Never rejects. */
  async drain(body: ReadableStream<Uint8Array> | null): Promise<void> {
    if (body === null || body.locked || this.#open >= MAX_CONCURRENT_DRAINS) return
    this.#open += 1
    try {
      await readOut(body)
    } finally {
      this.#open -= 1
    }
  }
}

async function readOut(body: ReadableStream<Uint8Array>): Promise<void> {
  const reader = body.getReader()
  const giveUp = () => void reader.cancel().catch(ignoreDisconnect)
  const timer = setTimeout(giveUp, DRAINED_MS)
  try {
    for (let left = DRAINED_BYTES; left > 0;) {
      const { value, done } = await reader.read()
      if (done) return
      left -= value.length
    }
    giveUp()
  } catch {
    ignoreDisconnect()
  } finally {
    clearTimeout(timer)
  }
}

function ignoreDisconnect(): void {
  // The client has closed the connection, so there is no one to report the error to.
}
