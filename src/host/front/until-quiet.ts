/**
 * How long the worker gets to accept the last connections that it was given, ms: when it is told to end, it drops those
 * that it has not begun to serve.
 */
const QUIET_MS = 100

/** Longest wait, ms. `ConnectionTable` may close handshakes that take longer than this, too. */
const LONGEST_MS = 3_000

const LOOK_EVERY_MS = 20

/**
 * Resolves when no TLS handshake has been in progress for a tenth of a second, and after three seconds at the latest.
 * @param handshaking whether one is in progress
 * @param now milliseconds, of a clock that never goes back
 */
export async function untilQuiet(handshaking: () => boolean, now: () => number): Promise<void> {
  const begun = now()
  let busyAt = begun
  while (now() - busyAt < QUIET_MS && now() - begun < LONGEST_MS) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
    if (handshaking()) busyAt = now()
  }
}
