import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { vi } from 'vitest'
import { z } from 'zod'

const SCRIPT = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

/** Each run of the command starts a process. */
vi.setConfig({ testTimeout: 30_000 })

export interface Run {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** Runs `verify` with these arguments. */
export function verify(...args: readonly string[]): Promise<Run> {
  return new Promise((resolve) => {
    execFile(process.execPath, [SCRIPT, 'verify', ...args], (error, out, err) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err })
    })
  })
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
