import { z } from 'zod'

/** The options a front thread is started with. */
export const frontPlanSchema = z.object({
  http: z.object({ host: z.string(), port: z.int() }),
  https: z.object({ host: z.string(), port: z.int() }),
  /** Whether other sockets share the addresses; the kernel then distributes connections evenly. */
  shared: z.boolean(),
  limits: z.object({ connections: z.int(), relayed: z.int(), perSource: z.int() }),
  /** How long a client may leave data unread that waits for it, ms. */
  unreadMs: z.int(),
  /** The key of the hash that gives each client a loopback address: the same for every front of a router. */
  sourceKey: z.instanceof(Uint8Array),
})

/** Messages to a front thread. */
export const toFrontSchema = z.discriminatedUnion('type', [
  /** Relays connections to the worker on these loopback ports from now on; null: connections wait for a worker. */
  z.object({
    type: z.literal('relay'),
    to: z.object({ http: z.int(), https: z.int() }).nullable(),
  }),
  /** Answers every request on a new connection with 503 from now on. */
  z.object({
    type: z.literal('refuse'),
    tls: z.object({ keyPem: z.string(), certPem: z.string() }).nullable(),
  }),
])

/** Messages from a front thread. */
export const fromFrontSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('open'), http: z.int(), https: z.int() }),
  /** An address could not be opened. */
  z.object({ type: z.literal('failed'), address: z.string(), code: z.string() }),
  /** Answers a `relay` message with null: the worker has received everything that it was given before. */
  z.object({ type: z.literal('quiet') }),
  /** Connections refused and closed since the last such message. */
  z.object({ type: z.literal('pressed'), refused: z.int(), closed: z.int() }),
  /** Clients disconnected since the last such message because they did not read. */
  z.object({ type: z.literal('unread'), count: z.int() }),
])

export type FrontPlan = z.output<typeof frontPlanSchema>
export type ToFront = z.output<typeof toFrontSchema>
export type FromFront = z.output<typeof fromFrontSchema>
