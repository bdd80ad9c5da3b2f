import { z } from 'zod'

/** The plan of a load generator: one window of load on one system. */
export const loadPlanSchema = z.object({
  port: z.int(),
  /** Whole requests, head and body, as latin1 text; they are sent in turn. */
  requests: z.array(z.string()).min(1),
  connections: z.int().min(1),
  /** Whether answers are streams, which are complete only with their end mark. */
  stream: z.boolean(),
  /** How long the load runs before the window opens, ms. */
  warmMs: z.number(),
  windowMs: z.number(),
  /** Whether every connection sends only one request. */
  once: z.boolean(),
})

export type LoadPlan = z.output<typeof loadPlanSchema>

export const loadResultSchema = z.object({
  /** Answers completed inside the window. */
  completed: z.int(),
  /** Answers other than 200, incomplete streams and lost connections, inside and outside the window. */
  failed: z.int(),
  /** The first failure. */
  failure: z.string().nullable(),
  /** Events received inside the window. */
  frames: z.int(),
  windowMs: z.number(),
  /** Latencies of answers completed inside the window, ms from the request's first byte. */
  latenciesMs: z.array(z.number()),
  /** Times to the first delta of the streams that began to answer inside the window, ms from the request's first byte. */
  firstDeltaMs: z.array(z.number()),
  /** Percentiles of the time between two frames of a stream inside the window, ms; null where there were none. */
  gapMs: z.object({ p50: z.number(), p99: z.number() }).nullable(),
})

export type LoadResult = z.output<typeof loadResultSchema>

/** Messages of the generator. */
export const loadMessageSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('window_opened') }),
  z.object({ type: z.literal('window_closed') }),
  z.object({ type: z.literal('result'), result: loadResultSchema }),
])

export interface WindowHooks {
  readonly opened: () => void
  readonly closed: () => void
}

/** A source of load on a system, for one window at a time. */
export interface Load<Plan = LoadPlan> {
  /** Runs one window; the hooks are called as it opens and closes. */
  run(plan: Plan, hooks: WindowHooks): Promise<LoadResult>
}
