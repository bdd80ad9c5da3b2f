import { z } from 'zod'

/** What a siege and the process of its attackers tell each other. */

export const toAttackersSchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('attack'),
    baseUrl: z.string(),
    /** The key of each attack, by its name. */
    keys: z.record(z.string(), z.string()),
  }),
  z.object({ type: z.literal('stop') }),
])
export type ToAttackers = z.output<typeof toAttackersSchema>

export const fromAttackersSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('open'), providerPort: z.int() }),
  /** What the deeds of each attack were answered with: how often which status, or none. */
  z.object({
    type: z.literal('deeds'),
    deeds: z.record(z.string(), z.record(z.string(), z.int())),
  }),
])
export type FromAttackers = z.output<typeof fromAttackersSchema>
