import { z } from 'zod'
import { StatementRefused } from '../../src/worker/storage/batch-outcome.ts'
import {
  StorageUnavailable,
  type Database,
  type Storage,
} from '../../src/worker/storage/database.ts'
import { ledgerBehind, type LedgerOutcome } from '../../src/worker/storage/ledger-calls.ts'

const value = z.union([z.string(), z.number(), z.null()])
const answerSchema = z.object({
  rows: z.array(z.array(z.record(z.string(), value))).optional(),
  /** Of an operation on the ledger. */
  outcome: z.custom<LedgerOutcome>((outcome) => typeof outcome === 'object').optional(),
  error: z.string().optional(),
  message: z.string().default(''),
})

/** The storage of a test worker, driven from Node. `fetcher` reaches the worker. */
export function remoteStorage(
  fetcher: (body: string) => Promise<{ json(): Promise<unknown> }>,
  instance = 'one',
): Storage {
  const ask = async (customer: string | null, more: object) => {
    const response = await fetcher(JSON.stringify({ instance, customer, ...more }))
    const { error, message, ...answer } = answerSchema.parse(await response.json())
    if (error === undefined) return answer
    if (error === 'StorageUnavailable') throw new StorageUnavailable(message)
    throw error === 'StatementRefused' ? new StatementRefused(message) : new Error(message)
  }
  const database = (customer: string | null): Database => ({
    batch: async (statements) => (await ask(customer, { statements })).rows ?? [],
    ledger: ledgerBehind(async (call) => {
      const { outcome } = await ask(customer, { call })
      if (outcome === undefined) throw new Error('the operation was left unanswered')
      return outcome
    }),
  })
  return { customer: database, directory: () => database(null) }
}
