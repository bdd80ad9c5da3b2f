/** How much of an unwanted body is read, and for how long, so that its sender gets to read the answer. */
const DRAINED_BYTES = 32 * 1024 * 1024
const DRAINED_MS = 5_000

/** For how many senders at a time that is done. It is a courtesy, and strangers may ask for it. */
const MOST_AT_A_TIME = 128

/**
 * Reads the rest of unwanted bodies and throws it away. A connection that is closed while its client still sends is
 * reset, and most clients then report a broken pipe instead of the refusal that is waiting for them.
 */
export class Drains {
  #open = 0

  /** Resolves when the body has ended, or enough of it has been read. Never rejects. */
  async drain(body: ReadableStream<Uint8Array> | null): Promise<void> {
    if (body === null || body.locked || this.#open >= MOST_AT_A_TIME) return
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
  const giveUp = () => void reader.cancel().catch(ignoreGone)
  const timer = setTimeout(giveUp, DRAINED_MS)
  try {
    for (let left = DRAINED_BYTES; left > 0;) {
      const { value, done } = await reader.read()
      if (done) return
      left -= value.length
    }
    giveUp()
  } catch {
    ignoreGone()
  } finally {
    clearTimeout(timer)
  }
}

function ignoreGone(): void {
  // There is nobody left to tell.
}
