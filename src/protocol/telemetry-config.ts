import * as z from 'zod'
import type { ConfigProblem } from './config-problem.ts'
import { staysPrivate } from './loopback.ts'

/** OpenTelemetry over HTTP: the daemon exports the telemetry of its workers (docs/observability.md). */
export const telemetrySchema = z.strictObject({
  /** Base address of a collector; `/v1/metrics` and `/v1/traces` are appended. */
  otlp_endpoint: z.url({ protocol: /^https?$/ }),
  metrics: z.boolean().default(true),
  traces: z.boolean().default(true),
  /** Whether spans carry the name of the customer; by default nothing says who made a request. */
  customer_names: z.boolean().default(false),
  interval_seconds: z.int().min(1).max(3600).default(60),
})

/** Telemetry reveals when and how much the router is used, so plain HTTP is allowed on loopback only. */
export function telemetryProblems(
  telemetry: z.output<typeof telemetrySchema> | undefined,
): ConfigProblem[] {
  if (telemetry === undefined) return []
  if (staysPrivate(new URL(telemetry.otlp_endpoint))) return []
  const reason = 'must be https unless it is a loopback address'
  return [{ path: 'service.telemetry.otlp_endpoint', reason }]
}
