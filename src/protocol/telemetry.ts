import * as z from 'zod'

/** The telemetry that a worker reports to its daemon, and the answer about the host's other workers. */

const MAX_TEXT = 4 * 1024 * 1024
export const MAX_SPANS = 2_000

/** Attribute of a settlement's span: seconds from the start of the attempt that served until it was settled. */
export const OPERATION_SECONDS = 'cmr.operation_seconds'

const hex = (digits: number) => z.string().regex(new RegExp(`^[0-9a-f]{${digits}}$`))
const attribute = z.union([z.string().max(256), z.number(), z.boolean()])

/** A finished step of a request. Attributes are names, counts and codes; never content. */
export const spanSchema = z.object({
  trace_id: hex(32),
  span_id: hex(16),
  parent_id: hex(16).nullable(),
  name: z.string().max(128),
  kind: z.enum(['server', 'client', 'internal']),
  /** Ms since the epoch. */
  start: z.number(),
  end: z.number(),
  error: z.boolean(),
  attributes: z.record(z.string().max(64), attribute),
})

export const telemetryReportSchema = z.object({
  /** The reporting isolate. */
  instance: z.string().max(64),
  /** Counters and histograms since its start, in the Prometheus text format. */
  metrics: z.string().max(MAX_TEXT),
  open_requests: z.int().min(0),
  /** Routes that are out of service (1) or being probed (0.5), as this isolate sees them. */
  resting: z.record(z.string(), z.number()),
  spans: z.array(spanSchema).max(MAX_SPANS),
})

/** The other workers of the host. */
export const telemetryAnswerSchema = z.object({
  metrics: z.array(z.string()),
  open_requests: z.int(),
  resting: z.record(z.string(), z.number()),
})

export type Span = z.output<typeof spanSchema>
export type TelemetryReport = z.output<typeof telemetryReportSchema>
export type TelemetryAnswer = z.output<typeof telemetryAnswerSchema>

export const NO_OTHER_WORKERS: TelemetryAnswer = { metrics: [], open_requests: 0, resting: {} }
