import { z } from 'zod'
import { providerProofSchema } from '../../protocol/provider-proof.ts'
import type { AdminOperation } from '../auth/admin-token.ts'
import type { Operation } from '../http/operation.ts'
import { PAGE_SIZE } from '../http/query.ts'
import { keyViewSchema } from '../settle/key-view.ts'
import { auditEntrySchema } from './audit-log.ts'
import {
  creditSchema,
  customerChangesSchema,
  keyChangesSchema,
  maintenanceSchema,
  newCustomerSchema,
  newKeySchema,
  newTokenSchema,
  rotationSchema,
} from './bodies.ts'
import { sessionSchema } from './sessions.ts'
import { tokenViewSchema } from './tokens.ts'

/** The operator's endpoints in the interface description (docs/admin.md). */

const tag = 'Admin'

const customer = z.object({
  id: z.string(),
  name: z.string(),
  plan: z.string(),
  billing: z.enum(['prepaid', 'postpaid']),
  balance_eur: z.string(),
  reserved_eur: z.string(),
  receipt_retention_days: z.int().nullable(),
  suspended_at: z.iso.datetime().nullable(),
  erased_at: z.iso.datetime().nullable(),
  alert_balance_eur: z.string().nullable(),
  alert_key_limit_pct: z.int().nullable(),
  created_at: z.iso.datetime(),
})

const key = keyViewSchema

const quarantined = z.object({
  request_id: z.string(),
  customer_id: z.string(),
  model: z.string(),
  provider: z.string(),
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  cost_eur: z.string(),
  created_at: z.iso.datetime(),
})

const json = (name: string, schema: z.ZodType): Operation['answer'] => ({
  'application/json': { name, schema },
})
const body = (name: string, schema: z.ZodType): NonNullable<Operation['body']> => ({
  mediaType: 'application/json',
  content: { name, schema },
})

const refused = ['invalid_request_error', 'request_too_large'] as const
const unknown = ['not_found'] as const

export const ADMIN_OPERATIONS = {
  createCustomer: {
    summary: 'Make a customer',
    tag,
    scope: 'customers',
    body: body('NewCustomer', newCustomerSchema),
    answer: json('Customer', customer),
    errors: refused,
  },
  listCustomers: {
    summary: 'List customers, oldest first',
    tag,
    scope: 'read',
    query: {
      limit: { ...PAGE_SIZE, description: 'Customers of a page: 100, at most 1000.' },
      after: { schema: { type: 'string' }, description: 'The last id of the page before.' },
    },
    answer: json('CustomerPage', z.object({ data: z.array(customer), has_more: z.boolean() })),
    errors: ['invalid_parameter'],
  },
  showCustomer: {
    summary: 'Show a customer',
    tag,
    scope: 'read',
    answer: json('Customer', customer),
    errors: unknown,
  },
  patchCustomer: {
    summary: 'Change, suspend or resume a customer; null takes the default of the service',
    tag,
    scope: 'customers',
    body: body('CustomerChanges', customerChangesSchema),
    answer: json('Customer', customer),
    errors: [...refused, ...unknown],
  },
  eraseCustomer: {
    summary: 'Erase a customer; the ledger stays under another id, which this answer alone tells',
    tag,
    scope: 'customers',
    answer: json(
      'ErasedCustomer',
      z.object({ id: z.string(), deleted: z.literal(true), ledger_id: z.string() }),
    ),
    errors: unknown,
  },
  createKey: {
    summary: 'Make an API key; its secret is shown only in this answer',
    tag,
    scope: 'customers',
    body: body('NewKey', newKeySchema),
    answer: json('CreatedKey', key.extend({ key: z.string() })),
    errors: [...refused, ...unknown],
  },
  listKeys: {
    summary: 'List the keys of a customer',
    tag,
    scope: 'read',
    answer: json('KeyList', z.object({ data: z.array(key) })),
    errors: unknown,
  },
  changeKey: {
    summary: 'Change the name and the limits of a key; null lifts a limit',
    tag,
    scope: 'customers',
    body: body('KeyChanges', keyChangesSchema),
    answer: json('Key', key),
    errors: [...refused, ...unknown],
  },
  rotateKey: {
    summary:
      'Give a key a new secret, shown only in this answer; the old one ends after a grace time',
    tag,
    scope: 'customers',
    body: body('KeyRotation', rotationSchema),
    answer: json('CreatedKey', key.extend({ key: z.string() })),
    errors: [...refused, ...unknown],
  },
  deleteKey: {
    summary: 'Delete a key',
    tag,
    scope: 'customers',
    answer: json('DeletedKey', z.object({ key_prefix: z.string(), deleted: z.literal(true) })),
    errors: unknown,
  },
  addCredit: {
    summary: 'Add credit; a reference that repeats changes nothing',
    tag,
    scope: 'customers',
    body: body('Credit', creditSchema),
    answer: json('CreditedCustomer', customer.extend({ applied: z.boolean() })),
    errors: [...refused, ...unknown],
  },
  createToken: {
    summary: 'Make a named admin token; it is shown only in this answer',
    tag,
    scope: 'all',
    body: body('NewAdminToken', newTokenSchema),
    answer: json('CreatedAdminToken', tokenViewSchema.extend({ token: z.string() })),
    errors: refused,
  },
  listTokens: {
    summary: 'List the named admin tokens',
    tag,
    scope: 'read',
    answer: json('AdminTokenList', z.object({ data: z.array(tokenViewSchema) })),
    errors: [],
  },
  revokeToken: {
    summary: 'Revoke a named admin token',
    tag,
    scope: 'all',
    answer: json('RevokedAdminToken', z.object({ id: z.string(), revoked: z.literal(true) })),
    errors: unknown,
  },
  createSession: {
    summary: 'Begin a session of the console with an admin token; the cookie is in `Set-Cookie`',
    tag,
    scope: 'read',
    answer: json('Session', sessionSchema),
    errors: refused,
  },
  showSession: {
    summary: 'Show whose token or session this is',
    tag,
    scope: 'read',
    answer: json('Session', sessionSchema),
    errors: [],
  },
  deleteSession: {
    summary: 'End the session of the console',
    tag,
    scope: 'read',
    answer: json('EndedSession', z.object({ ended: z.literal(true) })),
    errors: [],
  },
  audit: {
    summary: 'List the actions of operators, newest first',
    tag,
    scope: 'read',
    query: {
      limit: { ...PAGE_SIZE, description: 'Entries of a page: 100, at most 1000.' },
      before: { schema: { type: 'string' }, description: 'The last id of the page before.' },
    },
    answer: json('AuditPage', z.object({ data: z.array(auditEntrySchema), has_more: z.boolean() })),
    errors: ['invalid_parameter'],
  },
  listQuarantine: {
    summary: 'List the settlements that the storage refused although their answers were delivered',
    tag,
    scope: 'read',
    answer: json('QuarantineList', z.object({ data: z.array(quarantined) })),
    errors: [],
  },
  settleQuarantined: {
    summary: 'Settle one of them, if the storage takes it by now',
    tag,
    scope: 'all',
    answer: json(
      'SettledQuarantine',
      z.object({ request_id: z.string(), settled: z.literal(true) }),
    ),
    errors: ['invalid_request_error', ...unknown],
  },
  maintenance: {
    summary: 'Run the sweeps',
    tag,
    scope: 'all',
    body: body('Maintenance', maintenanceSchema),
    answer: json(
      'MaintenanceReport',
      z.object({ released: z.int(), expired: z.int(), cleared: z.int() }),
    ),
    errors: refused,
  },
  ledger: {
    summary: 'Show the position of the ledger, which never falls',
    tag,
    scope: 'read',
    answer: json('LedgerPosition', z.object({ position: z.int() })),
    errors: [],
  },
  metrics: {
    summary: 'Show the metrics, in the text format of Prometheus',
    tag,
    scope: 'read',
    answer: { 'text/plain': { name: 'Metrics', schema: z.string() } },
    errors: [],
  },
  providers: {
    summary: 'Show how far each provider is verified',
    tag,
    scope: 'read',
    answer: json('ProviderList', z.object({ data: z.array(providerProofSchema) })),
    errors: [],
  },
} satisfies Record<string, AdminOperation>
