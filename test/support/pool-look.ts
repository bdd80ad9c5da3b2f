/** Waits until the pool has looked at a connection that was given back; before that it gives it to no other exchange. */
export async function poolHasLooked(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}
