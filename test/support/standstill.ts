import { setTimeout as delay } from 'node:timers/promises'

/** How long a reading must stay the same, ms. */
const STILL_MS = 300

/**
 * Waits until a counter is above zero and has stopped growing.
 * @returns its value
 * @throws Error when it still grows after half a minute
 */
export async function standstill(read: () => number): Promise<number> {
  const deadline = performance.now() + 30_000
  let before = 0
  while (performance.now() < deadline) {
    const now = read()
    if (now > 0 && now === before) return now
    before = now
    await delay(STILL_MS)
  }
  throw new Error(`it still grows: ${before}`)
}
