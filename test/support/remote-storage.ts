import { z } from 'zod'
import { StatementRefused } from '../../src/worker/storage/batch-outcome.ts'
import {
  StorageUnavailable,
  type Database,
  type Storage,
} from '../../src/worker/storage/database.ts'

const value = z.union([z.string(), z.number(), z.null()])
const answerSchema = z.object({
  rows: z.array(z.array(z.record(z.string(), value))).optional(),
  error: z.string().optional(),
  message: z.string().default(''),
})

/** The storage of a test worker, driven from Node. `fetcher` reaches the worker. */
export function remoteStorage(
  fetcher: (body: string) => Promise<{ json(): Promise<unknown> }>,
  instance = 'one',
): Storage {
  const database = (customer: string | null): Database => ({
    async batch(statements) {
      const response = await fetcher(JSON.stringify({ instance, customer, statements }))
      const { rows, error, message } = answerSchema.parse(await response.json())
      if (rows !== undefined) return rows
      if (error === 'StorageUnavailable') throw new StorageUnavailable(message)
      throw error === 'StatementRefused' ? new StatementRefused(message) : new Error(message)
    },
  })
  return { customer: database, directory: () => database(null) }
}
