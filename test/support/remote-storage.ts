import { z } from 'zod'
import { StatementRefused } from '../../src/worker/storage/batch-outcome.ts'
import {
  StorageUnavailable,
  type Database,
  type Storage,
} from '../../src/worker/storage/database.ts'
import type {
  AdmissionFacts,
  SettlementResult,
} from '../../src/worker/storage/ledger-operations.ts'

const value = z.union([z.string(), z.number(), z.null()])
const answerSchema = z.object({
  rows: z.array(z.array(z.record(z.string(), value))).optional(),
  /** What an operation on the ledger returned; null for nothing. */
  answer: z.unknown().optional(),
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
    ledger: {
      admit: async (entry) => {
        const { answer } = await ask(customer, { call: { kind: 'admit', entry } })
        return z.custom<AdmissionFacts>().nullable().parse(answer) ?? undefined
      },
      settle: async (entry) => {
        const { answer } = await ask(customer, { call: { kind: 'settle', entry } })
        return z.custom<SettlementResult>().parse(answer)
      },
      release: async (requestId) => {
        const { answer } = await ask(customer, { call: { kind: 'release', requestId } })
        return z.boolean().parse(answer)
      },
    },
  })
  return { customer: database, directory: () => database(null) }
}
