import { z } from 'zod'

/** The result of `npm audit --json`: vulnerabilities, none, or unknown because the registry could not be reached. */
export type AuditVerdict =
  | { readonly kind: 'clean' }
  | { readonly kind: 'weak'; readonly findings: readonly string[] }
  | { readonly kind: 'unknown'; readonly reason: string }

const reportSchema = z.object({
  auditReportVersion: z.literal(2),
  vulnerabilities: z.record(
    z.string(),
    z.object({
      severity: z.enum(['info', 'low', 'moderate', 'high', 'critical']),
      range: z.string(),
    }),
  ),
})
const failureSchema = z.object({ message: z.string() })

/** Severities that do not fail the run; they are listed. */
const MINOR: ReadonlySet<string> = new Set(['info', 'low'])

/** Parses the report; any other output means that the registry could not be reached. */
export function auditVerdict(output: string): AuditVerdict {
  const value = parse(output)
  const report = reportSchema.safeParse(value)
  if (!report.success) {
    const failure = failureSchema.safeParse(value)
    const reason = failure.success ? failure.data.message : 'npm gave no report'
    return { kind: 'unknown', reason }
  }
  const findings = Object.entries(report.data.vulnerabilities)
    .filter(([, { severity }]) => !MINOR.has(severity))
    .map(([name, { severity, range }]) => `${name} ${range}: ${severity}`)
  return findings.length === 0 ? { kind: 'clean' } : { kind: 'weak', findings }
}

function parse(output: string): unknown {
  try {
    return JSON.parse(output)
  } catch {
    return undefined
  }
}
