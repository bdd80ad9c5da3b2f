import type { Check } from '../../verify/check.ts'
import { asciiOnly } from '../../protocol/terminal-text.ts'
import { printError, type Failing } from '../failure.ts'
import { EXIT_UNUSABLE } from '../subcommand.ts'
import { hintsFor } from './hints.ts'

/** A verdict to print: as text, or as JSON with the same content. */
export interface Outcome {
  readonly ok: boolean
  /** A summary of one line. */
  readonly summary: string
  readonly checks: readonly Check[]
  /** What could not be judged, and why. */
  readonly notes?: readonly string[] | undefined
  /** The exit code, instead of 0 or 1. */
  readonly exitCode?: number
  /** Whether the verdict is about the router that `npm start` runs on this machine. */
  readonly isLocal?: boolean
}

/** Prints an outcome and sets the exit code: its own, or else 0 when `ok` and 1 when not. */
export function report(outcome: Outcome, asJson: boolean): void {
  process.stdout.write(asJson ? json(toJson(outcome)) : table(outcome))
  process.exitCode = outcome.exitCode ?? (outcome.ok ? 0 : 1)
}

/** Prints why nothing could be verified. */
export function printProblem(message: string, asJson: boolean): void {
  if (asJson) {
    const summary = `NOT JUDGED: ${message}`
    const outcome = { ok: false, summary, checks: [], error: message }
    process.stdout.write(json(outcome))
  }
  printError(asciiOnly(message))
}

/**
 * How a command that verifies something fails: with exit status 2, because 1 is the answer "no", and with `--json` also
 * as a JSON verdict.
 */
export const JUDGING: Omit<Failing, 'told'> = {
  status: EXIT_UNUSABLE,
  print: (message, words) => printProblem(message, words.includes('--json')),
}

function toJson({ ok, summary, checks, notes = [] }: Outcome) {
  return {
    ok,
    summary,
    checks: checks.map(({ name, ok: holds, proves, detail }) => ({
      name,
      ok: holds,
      proves,
      detail,
    })),
    notes,
  }
}

function table({ summary, checks, notes = [], isLocal = false }: Outcome): string {
  const remarks = [
    ...notes.map((note) => `note  ${asciiOnly(note)}`),
    ...hintsFor(checks, { isLocal }).map((hint) => `hint  ${hint}`),
  ]
  const width = Math.max(0, ...checks.map(({ name }) => name.length))
  const rows = checks.map((check) => row(check, width))
  return [asciiOnly(summary), '', ...rows, ...remarks, ''].join('\n')
}

/** One check: the result and what it proves, then the details on a line of their own. */
function row({ ok, name, proves, detail }: Check, width: number): string {
  const head = `${ok ? 'ok  ' : 'FAIL'}  ${name.padEnd(width)}  `
  const meaning = ok || proves.startsWith('nothing: ') ? proves : `not proven: ${proves}`
  const detailLine = detail === '' ? '' : `\n      ${' '.repeat(width)}  ${asciiOnly(detail)}`
  return head + meaning + detailLine
}

/**
 * JSON with all other characters escaped: the same value for programs, but without characters that control the
 * terminal.
 */
function json(value: object): string {
  return `${JSON.stringify(value, null, 2).replaceAll(/[\x7f-\uffff]/g, escapeUnit)}\n`
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}
