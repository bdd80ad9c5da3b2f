/**
 * Turns of the microtask queue: more than any asynchronous function of this program takes from an event to its shared call.
 */
const MICROTASK_TURNS = 16

/** Resolves once all code that the current event has made ready has run. No other event is handled meanwhile. */
export async function microtasksEnd(): Promise<void> {
  for (let step = 0; step < MICROTASK_TURNS; step += 1) await Promise.resolve()
}
