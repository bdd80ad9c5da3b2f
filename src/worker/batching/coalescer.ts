import { createBatcher, type BatchDeps, type BatchRules } from './batcher.ts'

/** Runs a piece of work together with those of other requests; resolves or fails as the work itself does. */
export type Coalescer = (work: () => Promise<void>) => Promise<void>

/**
 * Lets one request do what several of one moment have to do: each of its steps then waits, and is woken, once
 * for all of them, and the calls that the pieces make find each other. The pieces must hold nothing that the
 * runtime ties to the request they come from (streams, bodies). The failure of one piece does not affect the others.
 */
export function createCoalescer(
  host: BatchDeps,
  rules: Omit<BatchRules<never, never>, 'run' | 'size'>,
): Coalescer {
  const run = createBatcher<() => Promise<void>, PromiseSettledResult<void>>(host, {
    ...rules,
    run: (works) => Promise.allSettled(works.map((work) => work())),
  })
  return async (work) => {
    const end = await run(work)
    if (end.status === 'rejected') throw end.reason
  }
}
