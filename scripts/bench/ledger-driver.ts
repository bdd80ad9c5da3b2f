import { randomUUID } from 'node:crypto'
import { LEDGER_PATHS } from '../../src/protocol/ledger-link.ts'
import { clusteredIds } from '../../src/worker/storage/clustered-ids.ts'
import type { LedgerCall } from '../../src/worker/storage/ledger-calls.ts'
import { packCalls } from '../../src/worker/storage/packed-calls.ts'
import { settledIn } from './ledger-answers.ts'
import { LedgerConnection } from './ledger-connection.ts'
import { ledgerPlanSchema, type LedgerPlan } from './ledger-plan.ts'
import { LedgerRequests } from './ledger-requests.ts'
import { LoadWindow } from './load-window.ts'

/**
 * Simulates the workers of a ledger process, in a process of its own: each connection is a closed loop that sends the
 * next call when the previous one is answered. It receives one `LedgerPlan` at a time, and sends the same messages as
 * the load generator.
 */
process.on('message', (received) => void run(ledgerPlanSchema.parse(received)))
process.on('disconnect', () => process.exit(0))

async function run(plan: LedgerPlan): Promise<void> {
  const window = new LoadWindow()
  const workers = Array.from({ length: plan.connections }, (_, index) =>
    drive(plan, index, window).catch((error: unknown) => window.failed(String(error))),
  )
  await window.pass(plan)
  await Promise.all(workers)
  process.send?.({ type: 'result', result: window.result })
}

/** Sends the calls of one worker until the window closes, and then settles what is still admitted. */
async function drive({ link, keys }: LedgerPlan, index: number, window: LoadWindow): Promise<void> {
  const connection = new LedgerConnection(link)
  const requests = new LedgerRequests(keys, index, clusteredIds(randomUUID, Date.now))
  const call = async (operations: readonly LedgerCall[]) => {
    const sentAt = performance.now()
    const answer = await connection.call(LEDGER_PATHS.operate, packCalls(operations))
    const elapsedMs = performance.now() - sentAt
    const settled = settledIn(answer, operations)
    for (let each = 0; each < settled; each += 1) window.completed(elapsedMs)
  }
  try {
    while (!window.isClosed) await call(requests.next(Date.now()))
    await call(requests.last(Date.now()))
  } finally {
    connection.close()
  }
}
