import type { Check, Verdict } from '../../verify/check.ts'

/** A verdict with what could not be judged at all. */
export interface Outcome extends Verdict {
  readonly notes?: readonly string[] | undefined
}

/** Prints an outcome, and sets the exit code: 0 where every check holds, 1 otherwise. */
export function report(outcome: Outcome, asJson: boolean): void {
  process.stdout.write(asJson ? `${JSON.stringify(toJson(outcome), null, 2)}\n` : table(outcome))
  process.exitCode = outcome.ok ? 0 : 1
}

/** Prints why nothing could be judged. */
export function printProblem(message: string, asJson: boolean): void {
  if (asJson) {
    process.stdout.write(`${JSON.stringify({ ok: false, checks: [], error: message }, null, 2)}\n`)
  }
  process.stderr.write(`error: ${printable(message)}\n`)
}

function toJson({ ok, checks, notes }: Outcome) {
  return {
    ok,
    checks: checks.map((check) => ({ name: check.name, ok: check.ok, detail: check.detail })),
    ...(notes === undefined || notes.length === 0 ? {} : { notes }),
  }
}

function table({ ok, checks, notes = [] }: Outcome): string {
  const failed = checks.filter((check) => !check.ok)
  const sum = ok
    ? `VALID: all ${checks.length} checks hold`
    : `NOT VALID: ${failed.length} of ${checks.length} checks failed: ` +
      failed.map(({ name }) => name).join(', ')
  const remarks = notes.map((note) => `note  ${printable(note)}`)
  const width = Math.max(0, ...checks.map(({ name }) => name.length))
  return [...checks.map((check) => row(check, width)), ...remarks, '', sum, ''].join('\n')
}

/** The result, what it proves, and on a line of its own what was seen. */
function row({ ok, name, proves, detail }: Check, width: number): string {
  const head = `${ok ? 'ok  ' : 'FAIL'}  ${name.padEnd(width)}  `
  const meaning = ok ? proves : `not proven: ${proves}`
  const seen = detail === '' ? '' : `\n      ${' '.repeat(width)}  ${printable(detail)}`
  return head + meaning + seen
}

/** Evidence is written by others: nothing of it may steer the terminal. */
function printable(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '?')
}
