import { z } from 'zod'
import type { Administrator } from '../auth/admin-token.ts'
import type { Database, Row } from '../storage/database.ts'
import { numberOf, optionalNumberOf, optionalTextOf, textOf } from '../storage/row.ts'
import { int64, raw, small, sql, text } from '../storage/sql.ts'

/** An action that is about to be carried out. */
export interface AuditEntry {
  /** The request's id. */
  readonly id: string
  readonly administrator: Pick<Administrator, 'tokenId' | 'name'>
  readonly action: string
  /** The customer, key, token or request that the action affects. */
  readonly target: string | null
  /** The request body without names and secrets. */
  readonly changes: Readonly<Record<string, unknown>>
}

/** An action as `GET /admin/audit` shows it. */
export const auditEntrySchema = z.object({
  id: z.string(),
  created_at: z.iso.datetime(),
  token_id: z.string().nullable().describe('Null: the boot token.'),
  token_name: z.string(),
  action: z.string(),
  target: z.string().nullable(),
  changes: z.record(z.string(), z.unknown()),
  status: z.int().nullable().describe('Of the answer; null where the router broke down before it.'),
  created: z.string().nullable().describe('The id of what the action made.'),
})

/** Writes an action to the log. If this throws, the action must not be carried out. `now` is ms since the epoch. */
export async function enterAction(
  directory: Database,
  { id, administrator, action, target, changes }: AuditEntry,
  now: number,
): Promise<void> {
  await directory.batch([
    sql`INSERT INTO audit_log (id, created_at, token_id, token_name, action, target, changes)
      VALUES (${id}, ${int64(now)}, ${administrator.tokenId}, ${administrator.name}, ${action},
        ${target}, ${JSON.stringify(changes)})`,
  ])
}

/** Writes the outcome of an action. */
export async function enterOutcome(
  directory: Database,
  {
    id,
    status,
    created,
  }: { readonly id: string; readonly status: number; readonly created: string | null },
): Promise<void> {
  await directory.batch([
    sql`INSERT INTO audit_outcomes (id, status, created)
      VALUES (${text(id)}, ${small(status)}, ${text(created)})`,
  ])
}

/** The newest entries, or those older than the entry `before`; undefined where there is no such entry. */
export async function listActions(
  directory: Database,
  { limit, before }: { readonly limit: number; readonly before: string | undefined },
): Promise<readonly z.output<typeof auditEntrySchema>[] | undefined> {
  const older =
    before === undefined
      ? raw('')
      : sql`WHERE (audit_log.created_at, audit_log.id) <
          (SELECT created_at, id FROM audit_log WHERE id = ${before})`
  const [rows = [], named = []] = await directory.batch([
    sql`SELECT audit_log.id, created_at, token_id, token_name, action, target, changes, status, created
      FROM audit_log LEFT JOIN audit_outcomes ON audit_outcomes.id = audit_log.id ${older}
      ORDER BY audit_log.created_at DESC, audit_log.id DESC LIMIT ${limit}`,
    sql`SELECT id FROM audit_log WHERE id = ${before ?? ''}`,
  ])
  if (before !== undefined && named.length === 0) return undefined
  return rows.map(viewOf)
}

function viewOf(row: Row): z.output<typeof auditEntrySchema> {
  return {
    id: textOf(row, 'id'),
    created_at: new Date(numberOf(row, 'created_at')).toISOString(),
    token_id: optionalTextOf(row, 'token_id'),
    token_name: textOf(row, 'token_name'),
    action: textOf(row, 'action'),
    target: optionalTextOf(row, 'target'),
    changes: z.record(z.string(), z.unknown()).parse(JSON.parse(textOf(row, 'changes'))),
    status: optionalNumberOf(row, 'status'),
    created: optionalTextOf(row, 'created'),
  }
}
