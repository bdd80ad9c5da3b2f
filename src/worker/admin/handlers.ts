import type { Context } from '../context.ts'
import { ApiError } from '../http/errors.ts'
import { readLimit } from '../http/query.ts'
import { json } from '../http/reply.ts'
import { beginErasure } from '../settle/erase.ts'
import { DEFAULT_PLAN } from '../settle/plan-terms.ts'
import type { Database } from '../storage/database.ts'
import { customerIds, listCustomer } from '../storage/directory.ts'
import { asAdmin, audited, noBody } from './as-admin.ts'
import { checkKeyLimits } from './check-key.ts'
import { changeCustomer, creditCustomer, findCustomer, insertCustomer } from './customers.ts'
import { mapConcurrently } from './map-concurrently.ts'
import {
  insertKey,
  listKeysOf,
  markKeyDeleted,
  MAX_FORMER_SECRETS,
  rotateKey,
  updateKey,
} from './keys.ts'
import { maintain } from './maintain.ts'
import {
  creditSchema,
  maintenanceSchema,
  newCustomerSchema,
  customerChangesSchema,
  keyChangesSchema,
  newKeySchema,
  rotationSchema,
} from './bodies.ts'

/** The handlers of the operator's interface (docs/admin.md): JSON in and out, for holders of an admin token only. */

const MAX_CONCURRENT_READS = 8

/** POST /admin/customers */
export const createCustomer = audited(
  { action: 'customers.create', scope: 'customers', body: newCustomerSchema },
  async (body, context) => {
    checkPlan(body.plan, context)
    const id = await context.keyring.newCustomerId()
    const customer = {
      name: body.name,
      plan: body.plan,
      billing: body.billing,
      balanceNano: body.balance_eur,
      receiptRetentionDays: body.receipt_retention_days ?? null,
    }
    const now = context.now()
    const view = await insertCustomer(context.storage.customer(id), id, customer, now)
    // The customer is listed only after it is written, so that every listed customer exists. If the process crashes in
    // between, no client ever got the id.
    await listCustomer(context.storage.directory(), id, now)
    return { answer: view, created: id }
  },
)

function checkPlan(plan: string, { config }: Context): void {
  if (plan === DEFAULT_PLAN || Object.hasOwn(config.plans, plan)) return
  throw new ApiError('invalid_request_error', 'There is no such plan.', { param: 'plan' })
}

/** PATCH /admin/customers/{id}: omitted members stay unchanged, null selects the service's default. */
export const patchCustomer = audited(
  { action: 'customers.change', scope: 'customers', body: customerChangesSchema },
  async (changes, context, { id = '' }) => {
    if (changes.plan !== undefined) checkPlan(changes.plan, context)
    const db = await customerDatabase(context, id)
    const now = context.now()
    return { answer: (await changeCustomer(db, id, changes, now)) ?? noSuchCustomer() }
  },
)

/** GET /admin/customers, oldest first; paged with `limit` and `after` (the last id of the previous page). */
export const listCustomers = asAdmin(async (request, { storage, keyring }) => {
  const query = new URL(request.url).searchParams
  const limit = readLimit(query)
  const after = query.get('after') ?? undefined
  if (after !== undefined && !(await keyring.knows(after))) {
    throw unlisted()
  }
  const ids = await customerIds(storage.directory(), { limit: limit + 1, after })
  if (ids === undefined) throw unlisted()
  const views = await mapConcurrently(ids.slice(0, limit), MAX_CONCURRENT_READS, (id) =>
    findCustomer(storage.customer(id), id),
  )
  const data = views.filter((view) => view !== undefined)
  return json({ data, has_more: ids.length > limit })
})

function unlisted(): ApiError {
  return new ApiError('invalid_parameter', '`after` names no customer.', { param: 'after' })
}

/** GET /admin/customers/{id} */
export const showCustomer = asAdmin(async (_request, context, { id = '' }) => {
  const db = await customerDatabase(context, id)
  return json((await findCustomer(db, id)) ?? noSuchCustomer())
})

/**
 * DELETE /admin/customers/{id}: erases a customer permanently. Only this answer contains the id under which its ledger is
 * kept.
 */
export const eraseCustomer = audited(
  { action: 'customers.erase', scope: 'customers', body: noBody },
  async (_body, context, { id = '' }) => {
    const db = await customerDatabase(context, id)
    const newLedgerId = await context.keyring.newCustomerId()
    const ledgerId = (await beginErasure(db, id, newLedgerId, context.now())) ?? noSuchCustomer()
    return { answer: { id, deleted: true, ledger_id: ledgerId } }
  },
)

/** POST /admin/customers/{id}/keys: creates a key. Only this answer contains the whole key. */
export const createKey = audited(
  { action: 'keys.create', scope: 'customers', body: newKeySchema },
  async (body, context, { id = '' }) => {
    const db = await customerDatabase(context, id)
    checkKeyLimits(body, context)
    const made = context.keyring.newApiKey(id)
    const view = await insertKey(db, id, { ...body, ...made }, context.now())
    return { answer: { key: made.key, ...(view ?? noSuchCustomer()) }, created: made.prefix }
  },
)

/** POST /admin/customers/{id}/keys/{key_prefix}/rotate: replaces the secret. Only this answer contains the new one. */
export const rotate = audited(
  { action: 'keys.rotate', scope: 'customers', body: rotationSchema },
  async ({ grace_seconds: grace }, context, { id = '', key_prefix: keyPrefix = '' }) => {
    const db = await customerDatabase(context, id)
    const renewed = context.keyring.renewApiKey(keyPrefix)
    const rotation = { renewed, graceMs: grace * 1000 }
    const view = (await rotateKey(db, id, rotation, context.now())) ?? noSuchKey()
    if (view === 'full') {
      const message = `${MAX_FORMER_SECRETS} former secrets of this key are in force; rotate once one has ended.`
      throw new ApiError('invalid_request_error', message)
    }
    return { answer: { key: renewed.key, ...view } }
  },
)

/** GET /admin/customers/{id}/keys */
export const listKeys = asAdmin(async (_request, context, { id = '' }) => {
  const db = await customerDatabase(context, id)
  return json({ data: (await listKeysOf(db, id, context.now())) ?? noSuchCustomer() })
})

/** PATCH /admin/customers/{id}/keys/{key_prefix}: omitted members stay unchanged; null removes a limit. */
export const changeKey = audited(
  { action: 'keys.change', scope: 'customers', body: keyChangesSchema },
  async (changes, context, { id = '', key_prefix: keyPrefix = '' }) => {
    const db = await customerDatabase(context, id)
    checkKeyLimits(changes, context)
    return { answer: (await updateKey(db, id, keyPrefix, changes, context.now())) ?? noSuchKey() }
  },
)

/** DELETE /admin/customers/{id}/keys/{key_prefix} */
export const deleteKey = audited(
  { action: 'keys.delete', scope: 'customers', body: noBody },
  async (_body, context, { id = '', key_prefix: keyPrefix = '' }) => {
    const db = await customerDatabase(context, id)
    if (!(await markKeyDeleted(db, id, keyPrefix, context.now()))) {
      noSuchKey()
    }
    return { answer: { key_prefix: keyPrefix, deleted: true } }
  },
)

/** POST /admin/customers/{id}/credits: adds a credit; a repeated reference changes nothing. */
export const addCredit = audited(
  { action: 'credits.add', scope: 'customers', body: creditSchema },
  async (body, context, { id = '' }) => {
    const db = await customerDatabase(context, id)
    const credit = { amountNano: body.amount_eur, reference: body.reference }
    const result = (await creditCustomer(db, id, credit, context.now())) ?? noSuchCustomer()
    return { answer: { ...result.customer, applied: result.applied } }
  },
)

/** POST /admin/maintenance: runs the sweeps. In local mode the request may set the time that counts as now. */
export const maintenance = audited(
  { action: 'maintenance.run', scope: 'all', body: maintenanceSchema },
  async (body, context) => {
    if (body.now !== undefined && context.config.service.mode !== 'local') {
      const message = 'Only in local mode may maintenance run at another time.'
      throw new ApiError('invalid_request_error', message, { param: 'now' })
    }
    const report = await maintain(context.storage, body.now ?? context.now(), context.now())
    context.log('sweep', { count: report.released + report.expired + report.cleared })
    return { answer: report }
  },
)

/** GET /admin/providers: the verification status of each provider in the daemon. */
export const listProviders = asAdmin(async (_request, { link }) =>
  json({ data: await link.providers() }),
)

/** The storage of a customer. Only ids that this service generated reach it. */
async function customerDatabase(context: Context, id: string): Promise<Database> {
  return (await context.keyring.knows(id)) ? context.storage.customer(id) : noSuchCustomer()
}

function noSuchCustomer(): never {
  throw new ApiError('not_found', 'There is no such customer.')
}

function noSuchKey(): never {
  throw new ApiError('not_found', 'The customer has no such key.')
}
