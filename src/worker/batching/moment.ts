/**
 * Turns of the microtask queue: more than any asynchronous function of this program takes from an event to its shared call.
 */
const STEPS_OF_A_MOMENT = 16

/** Resolves once all code that the current event has made ready has run. No other event is handled meanwhile. */
export async function momentEnds(): Promise<void> {
  for (let step = 0; step < STEPS_OF_A_MOMENT; step += 1) await Promise.resolve()
}
