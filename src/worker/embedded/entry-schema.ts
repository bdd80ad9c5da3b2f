import { z } from 'zod'
import type { SettlementEntry } from '../storage/ledger-operations.ts'

const nano = z.string().regex(/^-?[0-9]+$/)

const usageSchema = z.strictObject({
  model: z.string(),
  modality: z.string(),
  provider: z.string(),
  region: z.string().nullable(),
  billingUnit: z.string(),
  audioSeconds: z.number().nullable(),
  promptTokens: z.number(),
  completionTokens: z.number(),
  costNano: nano,
  discountPct: z.number(),
  usdEur: z.string().nullable(),
  capped: z.boolean(),
  failover: z.boolean(),
  createdAtMs: z.number(),
})

const receiptSchema = z.strictObject({
  id: z.string(),
  jws: z.string(),
  sha256: z.string(),
  kid: z.string(),
  expiresAtMs: z.number(),
  evidenceRefs: z.array(z.string()),
})

/** An entry of the journal. */
export const settlementEntrySchema: z.ZodType<SettlementEntry> = z.strictObject({
  requestId: z.string(),
  customerId: z.string(),
  keyPrefix: z.string(),
  claim: z.null(),
  usage: usageSchema,
  receipt: receiptSchema.nullable(),
  answer: z.string().nullable(),
  alertBelowNano: nano.nullable(),
})
