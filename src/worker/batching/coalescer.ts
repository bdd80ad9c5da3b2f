import { createBatcher, type BatchDeps, type BatchRules } from './batcher.ts'

/**
 * Runs a piece of work together with that of other requests in the same group; resolves or rejects as the work itself does.
 */
export type Coalescer = (group: string, work: () => Promise<void>) => Promise<void>

/**
 * Runs work of several requests inside one of them, so that each asynchronous step wakes up one request instead of
 * many, and the calls made by the pieces are batched. The pieces must hold nothing that the runtime ties to their own
 * request (streams, bodies). The failure of one does not affect the others, but the pieces of a group end together: what may be
 * slow belongs in a group of its own. What a piece signs and stores shares a call only with what the other pieces do in the same
 * moment (`ofOneMoment`), so without the coalescer each settlement would be two calls by itself.
 */
export function createCoalescer(
  host: BatchDeps,
  rules: Omit<BatchRules<never, never>, 'run' | 'size'>,
): Coalescer {
  type Run = (work: () => Promise<void>) => Promise<PromiseSettledResult<void>>
  const groups = new Map<string, Run>()

  function batchesOf(group: string): Run {
    const known = groups.get(group)
    if (known !== undefined) return known
    const run: Run = createBatcher(host, {
      ...rules,
      run: (works: readonly (() => Promise<void>)[]) =>
        Promise.allSettled(works.map((work) => work())),
    })
    groups.set(group, run)
    return run
  }

  return async (group, work) => {
    const end = await batchesOf(group)(work)
    if (end.status === 'rejected') throw end.reason
  }
}
