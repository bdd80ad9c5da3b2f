import { z } from 'zod'

const linkEndSchema = z.object({
  port: z.int(),
  worker: z.object({ certPem: z.string(), keyPem: z.string() }),
  serverCertPem: z.string(),
  host: z.string(),
})

/** A window of load on a ledger process alone: as many workers as connections. */
export const ledgerPlanSchema = z.object({
  link: linkEndSchema,
  /** The keys that are used, each of a customer of its own. */
  keys: z.array(z.object({ customerId: z.string(), keyPrefix: z.string(), keyHash: z.string() })),
  connections: z.int().min(1),
  warmMs: z.number(),
  windowMs: z.number(),
})

export type LedgerPlan = z.output<typeof ledgerPlanSchema>
