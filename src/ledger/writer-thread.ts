import { workerData } from 'node:worker_threads'
import { unpackBatches } from '../worker/storage/packed-batches.ts'
import { unpackCalls } from '../worker/storage/packed-calls.ts'
import { lockLedger } from './ledger-lock.ts'
import { threadPlanSchema, type CallKind, type ThreadCall } from './thread-messages.ts'
import { answerCall, contentOf, refuseCall, serveThread } from './thread-port.ts'
import { Writer } from './writer.ts'

/**
 * The one thread that writes the ledger. What all workers sent while it committed is its next transaction, so that they
 * wait for the disk together.
 */

const { path } = threadPlanSchema.parse(workerData)

/** A transaction delays those who come after it; a call of a worker is at most 4 MiB of them. */
const MAX_CALLS = 64

await serveThread(MAX_CALLS, async () => {
  lockLedger(path)
  const writer = await Writer.open(path, Date.now)
  const serve: Readonly<Record<CallKind, (calls: readonly ThreadCall[]) => Promise<void>>> = {
    operations: (calls) =>
      together(calls, unpackCalls, (operations) => writer.operations(operations)),
    batches: (calls) =>
      together(calls, unpackBatches, async (batches) =>
        (await writer.batches(batches)).map(({ outcome }) => outcome),
      ),
    fold: async (calls) => {
      const done = await writer.fold().then(
        () => true,
        () => false,
      )
      for (const call of calls) {
        if (done) answerCall(call, true)
        else refuseCall(call)
      }
    },
  }
  return async (calls) => {
    // Folds last: whoever asked for one reads everything that was confirmed before it was answered.
    for (const kind of ['operations', 'batches', 'fold'] as const) {
      const some = calls.filter((call) => call.kind === kind)
      // oxlint-disable-next-line no-await-in-loop -- one kind after another
      if (some.length > 0) await serve[kind](some)
    }
  }
})

/** Carries out the items of several calls as one list, and answers each call with its own. */
async function together<Item>(
  calls: readonly ThreadCall[],
  unpack: (packed: never) => readonly Item[],
  carryOut: (items: readonly Item[]) => Promise<readonly unknown[]>,
): Promise<void> {
  const understood = calls.flatMap((call) => {
    const items = contentOf(call, unpack)
    return items === undefined ? [] : [{ call, items }]
  })
  const outcomes = await carryOut(understood.flatMap(({ items }) => items))
  let next = 0
  for (const { call, items } of understood) {
    answerCall(call, outcomes.slice(next, next + items.length))
    next += items.length
  }
}
