/** Time for the worker to take the last of what it was given, ms: it drops what it has not begun with when it is told to end. */
const QUIET_MS = 100

/** A handshake that takes longer may be closed for a new connection, too (`ConnectionTable`). */
const LONGEST_MS = 3_000

const LOOK_EVERY_MS = 20

/**
 * Resolves when no TLS handshake has been under way for a tenth of a second, and after three seconds at the latest.
 * @param handshaking whether one is under way
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
