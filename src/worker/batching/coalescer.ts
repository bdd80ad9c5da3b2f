import { createBatcher, type BatchDeps, type BatchRules } from './batcher.ts'
import { startDeadline, type After } from './deadline-timer.ts'
import { platformTurn } from './joiners.ts'
import { microtasksEnd } from './microtasks.ts'

/**
 * Runs a piece of work together with the work of other requests in the same group; resolves or rejects as the work itself
 * does. `callAfter` measures how long the request waits.
 */
export type Coalescer = (
  group: string,
  work: () => Promise<void>,
  callAfter?: After,
) => Promise<void>

type Work = () => Promise<void>
type End = PromiseSettledResult<void>
type Rules = Omit<BatchRules<never, never>, 'run' | 'size'>

/** The end of a piece of work; `later` for one that takes longer than others of its group. */
type EndOrLater = End | { readonly status: 'later'; readonly end: Promise<End> }

/**
 * Runs the work of several requests inside one of them, so that each asynchronous step wakes one request instead of many,
 * and the calls that the pieces of work make are batched. The work must hold nothing that the runtime ties to its own
 * request (streams, bodies). A failure of one piece does not affect the others. Pieces that end at the same time wake their
 * requests together; a piece that takes longer delays no other. Signing and storing of a piece share a call only with what
 * the other pieces do at the same time (`microtask-batcher.ts`), so without the coalescer each settlement would make two calls
 * of its own.
 */
export function createCoalescer(host: BatchDeps, rules: Rules): Coalescer {
  const groups = new Map<string, (work: Work, callAfter?: After) => Promise<EndOrLater>>()

  function batchesOf(group: string) {
    const known = groups.get(group)
    if (known !== undefined) return known
    const run = createBatcher(host, {
      ...rules,
      run: (works: readonly Work[]) => runTogether(works, host, rules),
    })
    groups.set(group, run)
    return run
  }

  return async (group, work, callAfter) => {
    const first = await batchesOf(group)(work, callAfter)
    const end = first.status === 'later' ? await inTime(first.end, host, rules, callAfter) : first
    if (end.status === 'rejected') throw end.reason
  }
}

/** Runs all pieces; returns when the first has ended, together with those that end in the same microtask run. */
async function runTogether(
  works: readonly Work[],
  host: BatchDeps,
  rules: Rules,
): Promise<readonly EndOrLater[]> {
  const ended = new Map<Work, End>()
  const { promise: firstEnded, resolve: noteFirst } = Promise.withResolvers<void>()
  const running = works.map((work) =>
    endOf(work, (end) => {
      ended.set(work, end)
      noteFirst()
    }),
  )
  await firstEnded
  await microtasksEnd()
  if (ended.size < works.length) host.keepAlive(Promise.all(running))
  return works.map((work, index) => {
    const end = ended.get(work)
    const later = running[index]
    if (end !== undefined || later === undefined) return end ?? lost(rules)
    return { status: 'later', end: later }
  })
}

/**
 * The end of a piece that another request runs, or a failure when its own request has waited for `joinTimeoutMs`. It awaits
 * a promise of its own: after one of another request, code that V8 has optimised continues as that request, and the runtime
 * then refuses it its own streams.
 */
async function inTime(
  running: Promise<End>,
  { now, keepAlive }: BatchDeps,
  rules: Rules,
  callAfter?: After,
): Promise<End> {
  const { promise, resolve } = Promise.withResolvers<End>()
  const fail = () => resolve(lost(rules))
  // The runtime rejects `running` when it ends the request that does the work.
  const settled = running.then(resolve, fail)
  const passed = () => {
    // Resolving a promise of a request that has ended makes the runtime log a warning that is not JSON, so the request is
    // kept alive.
    keepAlive(settled.then(platformTurn))
    fail()
  }
  const deadline = startDeadline(rules.joinTimeoutMs, now, passed, callAfter)
  const end = await promise
  deadline.stop()
  return end
}

const DONE: End = { status: 'fulfilled', value: undefined }

async function endOf(work: Work, note: (end: End) => void): Promise<End> {
  let end = DONE
  try {
    await work()
  } catch (reason) {
    end = { status: 'rejected', reason }
  }
  note(end)
  return end
}

function lost({ timeoutError }: Rules): End {
  return { status: 'rejected', reason: timeoutError() }
}
