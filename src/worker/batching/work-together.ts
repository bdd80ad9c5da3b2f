import { batchCalls, type BatchHost, type BatchRules } from './batch-calls.ts'

/** Does a piece of work, with those of other requests; resolves or fails as the work itself does. */
export type Together = (work: () => Promise<void>) => Promise<void>

/**
 * Lets one request do what several of one moment have to do: each of its steps then waits, and is woken, once
 * for all of them, and the calls that the pieces make find each other. The pieces must hold nothing that the
 * runtime ties to the request they come from (streams, bodies); what becomes of one is nothing to the others.
 */
export function workTogether(
  host: BatchHost,
  rules: Omit<BatchRules<never, never>, 'run'>,
): Together {
  const ask = batchCalls<() => Promise<void>, PromiseSettledResult<void>>(host, {
    ...rules,
    run: (works) => Promise.allSettled(works.map((work) => work())),
  })
  return async (work) => {
    const end = await ask(work)
    if (end.status === 'rejected') throw end.reason
  }
}
