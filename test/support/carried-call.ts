import type { CarriedCall, LostThread } from '../../src/worker/routing/carried-calls.ts'

/** A call whose thread of the daemon lives on, unless it is said how it was lost. */
export function carriedCall(
  lostThread: () => Promise<LostThread | undefined> = async () => undefined,
): CarriedCall {
  return { lostThread, daemonBack: async () => {}, end: () => {} }
}
