import { z } from 'zod'
import type { AdminApi } from '../stack/admin-api.ts'

const ledgerSchema = z.object({ position: z.int() })

/**
 * Returns a warning when the ledger is behind the last reported position: a host can replace a guest's disk with an
 * earlier copy.
 */
export async function findRollback(
  admin: AdminApi,
  expected: number | undefined,
): Promise<string | undefined> {
  if (expected === undefined) return undefined
  const answer = await admin.call('GET', '/admin/ledger')
  const { position } = ledgerSchema.parse(answer)
  if (position >= expected) return undefined
  return (
    `the ledger is at position ${position}, but was at ${expected} before: ` +
    'an earlier state of its storage was put back'
  )
}
