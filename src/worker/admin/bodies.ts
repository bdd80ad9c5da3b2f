import { z } from 'zod'
import { STRENGTHS } from '../../protocol/constraints.ts'
import { isSelector } from '../../protocol/selector.ts'
import { ADMIN_SCOPES } from '../auth/admin-token.ts'
import { TIMESTAMP } from '../http/query.ts'
import { LIMIT_RESETS } from '../settle/key-limits.ts'
import { DEFAULT_PLAN } from '../settle/plan-terms.ts'
import { amountSchema, labelSchema } from './read-body.ts'

/** Schemas of the request bodies of the operator's endpoints. */

const wholeDays = z.int().min(1).max(3650)

export const newCustomerSchema = z.strictObject({
  name: labelSchema,
  plan: labelSchema.default(DEFAULT_PLAN),
  billing: z.enum(['prepaid', 'postpaid']),
  balance_eur: amountSchema.default(0n),
  receipt_retention_days: wholeDays.optional(),
})

/** Omitted members stay unchanged; null selects the service's default. */
export const customerChangesSchema = z.strictObject({
  name: labelSchema.optional(),
  plan: labelSchema.optional(),
  receipt_retention_days: wholeDays.nullable().optional(),
  suspended: z.boolean().optional(),
  alert_balance_eur: amountSchema.nullable().optional(),
  alert_key_limit_pct: z.int().min(1).max(100).nullable().optional(),
})

const NO_TIMESTAMP = `Give ${TIMESTAMP.expected}.`

const timestampSchema = z.string().transform((text, check) => {
  const at = TIMESTAMP.read(text)
  if (at !== undefined) return at
  check.addIssue({ code: 'custom', message: NO_TIMESTAMP })
  return z.NEVER
})

const timeSchema = timestampSchema.refine((at) => at >= 0, NO_TIMESTAMP)

const selector = z.string().refine(isSelector, 'Give selectors, such as "glm-5" or "nova/glm-5".')
const atLeastOne = z.int().min(1)

/** The limits of a key; null removes a limit. */
const keyLimits = {
  expires_at: timeSchema.nullable().optional(),
  models: z.array(selector).min(1).max(100).nullable().optional(),
  requests_per_minute: atLeastOne.nullable().optional(),
  tokens_per_minute: atLeastOne.nullable().optional(),
  concurrent_requests: atLeastOne.nullable().optional(),
  limit_eur: amountSchema.nullable().optional(),
  limit_reset: z.enum(LIMIT_RESETS).optional(),
  min_attestation: z.enum(STRENGTHS).nullable().optional(),
}

export const newKeySchema = z.strictObject({ name: labelSchema, ...keyLimits })

export const keyChangesSchema = z.strictObject({ name: labelSchema.optional(), ...keyLimits })

const DAY_SECONDS = 86_400

export const rotationSchema = z.strictObject({
  grace_seconds: z
    .int()
    .min(0)
    .max(30 * DAY_SECONDS)
    .default(DAY_SECONDS),
})

export const newTokenSchema = z.strictObject({
  name: labelSchema,
  scope: z.enum(ADMIN_SCOPES),
  expires_at: timeSchema.nullable().optional(),
})

export const creditSchema = z.strictObject({
  amount_eur: amountSchema.refine((nano) => nano > 0n, 'A credit must be more than nothing.'),
  reference: labelSchema,
})

export const maintenanceSchema = z.strictObject({
  now: timestampSchema.optional(),
})
