import { z } from 'zod'
import { TIMESTAMP } from '../http/query.ts'
import { DEFAULT_PLAN } from '../settle/plan-terms.ts'
import { amountSchema, labelSchema } from './read-body.ts'

/** The bodies that the operator's endpoints take. */

export const newCustomerSchema = z.strictObject({
  name: labelSchema,
  plan: labelSchema.default(DEFAULT_PLAN),
  billing: z.enum(['prepaid', 'postpaid']),
  balance_eur: amountSchema.default(0n),
  receipt_retention_days: z.int().min(1).max(3650).optional(),
})

export const newKeySchema = z.strictObject({ name: labelSchema })

export const creditSchema = z.strictObject({
  amount_eur: amountSchema.refine((nano) => nano > 0n, 'A credit must be more than nothing.'),
  reference: labelSchema,
})

export const maintenanceSchema = z.strictObject({
  now: z
    .string()
    .transform((text, check) => {
      const time = TIMESTAMP.read(text)
      if (time !== undefined) return time
      check.addIssue({ code: 'custom', message: `Give ${TIMESTAMP.expected}.` })
      return z.NEVER
    })
    .optional(),
})
