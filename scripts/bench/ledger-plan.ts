import { z } from 'zod'

const linkEndSchema = z.object({
  port: z.int(),
  worker: z.object({ certPem: z.string(), keyPem: z.string() }),
  serverCertPem: z.string(),
  host: z.string(),
})

/** A window of load on a ledger process by itself. Each connection stands for one worker. */
export const ledgerPlanSchema = z.object({
  link: linkEndSchema,
  /** The keys to use; each belongs to another customer. */
  keys: z.array(z.object({ customerId: z.string(), keyPrefix: z.string(), keyHash: z.string() })),
  connections: z.int().min(1),
  warmMs: z.number(),
  windowMs: z.number(),
})

export type LedgerPlan = z.output<typeof ledgerPlanSchema>
