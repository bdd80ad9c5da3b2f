import { z } from 'zod'
import { run, type Run } from './run-program.ts'

/** Runs `verify` with these arguments. */
export function verify(...args: readonly string[]): Promise<Run> {
  return run(['verify', ...args])
}

const checkSchema = z.strictObject({
  name: z.string(),
  ok: z.boolean(),
  proves: z.string().min(1),
  detail: z.string(),
})

const outcomeSchema = z.strictObject({
  ok: z.boolean(),
  summary: z.string().min(1),
  checks: z.array(checkSchema),
  notes: z.array(z.string()),
})

/** The first line of a verdict that was printed as JSON. */
export const summaryOf = ({ out }: Run) => outcomeSchema.parse(JSON.parse(out)).summary

/** Names of the failed checks of a verdict that was printed as JSON. */
export function failedChecks({ out }: Run): string[] {
  const { checks } = outcomeSchema.parse(JSON.parse(out))
  return checks.filter(({ ok }) => !ok).map(({ name }) => name)
}
