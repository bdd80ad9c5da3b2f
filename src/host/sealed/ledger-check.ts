import { z } from 'zod'
import type { AdminApi } from '../stack/admin-api.ts'

const ledgerSchema = z.object({ position: z.int() })

/**
 * What to tell where the ledger is behind the position that was reported before, undefined where it is not: whoever holds
 * the disk of a guest can put an earlier state of it back.
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
