import { createBatcher, type BatchDeps, type BatchRules } from './batcher.ts'
import { startDeadline, type After } from './deadline-timer.ts'
import { platformTurn } from './joiners.ts'
import { momentEnds } from './moment.ts'

/**
 * Runs a piece of work together with that of other requests in the same group; resolves or rejects as the work itself does.
 * `callAfter` measures how long the request waits.
 */
export type Coalescer = (
  group: string,
  work: () => Promise<void>,
  callAfter?: After,
) => Promise<void>

type Work = () => Promise<void>
type End = PromiseSettledResult<void>
type Rules = Omit<BatchRules<never, never>, 'run' | 'size'>

/** The end of a piece, or of one that takes longer than others of its group, a promise of it. */
type EndOrLater = End | { readonly status: 'later'; readonly end: Promise<End> }

/**
 * Runs work of several requests inside one of them, so that each asynchronous step wakes up one request instead of
 * many, and the calls made by the pieces are batched. The pieces must hold nothing that the runtime ties to their own
 * request (streams, bodies). The failure of one does not affect the others. Pieces that end in one moment wake their requests
 * together; one that takes longer keeps no other waiting. What a piece signs and stores shares a call only with what the other
 * pieces do in the same moment (`moment-batcher.ts`), so without the coalescer each settlement would be two calls by itself.
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

/** Runs all pieces until the first has ended, and those that end in the same moment. */
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
  await momentEnds()
  if (ended.size < works.length) host.keepAlive(Promise.all(running))
  return works.map((work, index) => {
    const end = ended.get(work)
    const later = running[index]
    if (end !== undefined || later === undefined) return end ?? lost(rules)
    return { status: 'later', end: later }
  })
}

/**
 * The end of a piece that another request works at, or a failure once its own request has waited for as long as it may. It waits
 * for a promise of its own: after one of another request, code that V8 has optimised goes on as that request, and the runtime
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
  // The runtime rejects it when it ends the request that does the work.
  const told = running.then(resolve, fail)
  const passed = () => {
    // Resolving a promise of a request that has ended makes the runtime write a warning, which is not JSON, into the log.
    keepAlive(told.then(platformTurn))
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
