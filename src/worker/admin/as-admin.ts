import { z } from 'zod'
import { requireAdmin, type AdminScope } from '../auth/admin-token.ts'
import type { Context, Handler } from '../context.ts'
import { errorFields } from '../http/error-fields.ts'
import { json } from '../http/reply.ts'
import { toApiError } from '../http/to-api-error.ts'
import { enterAction, enterOutcome } from './audit-log.ts'
import { readJson } from './read-body.ts'

type Params = Parameters<Handler>[2]

/** Wraps a handler that only reads: it requires an admin token. */
export function asAdmin(handler: Handler): Handler {
  return async (request, context, params) => {
    await requireAdmin(request, 'read', context)
    return handler(request, context, params)
  }
}

/** An action: its name in the audit log, and the token scope it requires. */
interface Action<Schema extends z.ZodType> {
  readonly action: string
  readonly scope: Exclude<AdminScope, 'read'>
  readonly body: Schema
}

/** The result of an action. */
interface Done {
  readonly answer: unknown
  /** The id of what it created. */
  readonly created?: string
}

/** The schema of a request that takes no body, or an empty object. */
export const noBody = z.strictObject({})

/**
 * Wraps a handler that changes something: checks the scope, reads the body, writes the action to the audit log, performs it,
 * and writes the outcome. If the audit log cannot be written, the action is not performed.
 */
export function audited<Schema extends z.ZodType>(
  { action, scope, body: schema }: Action<Schema>,
  perform: (body: z.output<Schema>, context: Context, params: Params) => Promise<Done>,
): Handler {
  return async (request, context, params) => {
    const administrator = await requireAdmin(request, scope, context)
    const { value, given } = await readJson(request, schema, context)
    const directory = context.storage.directory()
    const id = context.requestId
    const target = auditTarget(params['key_prefix'] ?? params['request_id'] ?? params['id'])
    const entry = { id, administrator, action, target, changes: auditable(given) }
    await enterAction(directory, entry, context.now())
    const outcome = async (status: number, created: string | null) => {
      try {
        await enterOutcome(directory, { id, status, created })
      } catch (error) {
        context.log('audit_outcome_lost', { request_id: id, ...errorFields(error) })
      }
    }
    try {
      const { answer, created = null } = await perform(value, context, params)
      await outcome(200, created)
      return json(answer)
    } catch (error) {
      await outcome(toApiError(error).status, null)
      throw error
    }
  }
}

/** Ids that the router generates: key prefixes, customer ids, request ids and token ids. */
const MADE_ID = /^(?:cmr_[0-9a-z]{28}_[0-9a-z]{10}|[0-9a-z]{28}|[0-9a-z]{10}|[0-9a-f-]{36})$/

/** The target for the audit log. Anything but an id is masked: a client may have pasted a whole key into the path. */
function auditTarget(given: string | undefined): string | null {
  if (given === undefined) return null
  return MADE_ID.test(given) ? given : '[not an id]'
}

/** Members with free text, which may contain personal data. */
const FREE_TEXT: ReadonlySet<string> = new Set(['name', 'reference'])

/** A checked body with its free text masked: the erasure of a customer does not reach the audit log. */
function auditable(given: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => [
      name,
      FREE_TEXT.has(name) ? '[not kept]' : value,
    ]),
  )
}
