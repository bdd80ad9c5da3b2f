import { traceError } from '../protocol/error-trace.ts'
import { withoutControls } from '../protocol/terminal-text.ts'
import type { Subcommand } from './subcommand.ts'

/** A class of errors whose messages are sentences for whoever runs the command. */
export type Told = abstract new (...given: never[]) => Error

/** How a command fails. */
export interface Failing {
  /** What it tells by its message. So it does errors of the system, such as of a file that is not there. */
  readonly told: readonly Told[]
  /** Its exit status, 1 where absent. */
  readonly status?: number
  /** In place of `printError`. */
  readonly print?: (message: string, words: readonly string[]) => void
}

/**
 * The `explain` of a command: `error: ` and the reason on standard error, the same for all of them, so that neither people nor
 * programs take it for output. Of any other error only class, code and place are told: its message may quote what was read,
 * such as a key.
 */
export function explainer({ told, status = 1, print = printError }: Failing) {
  return (error: unknown, words: readonly string[]): number => {
    const isTold = told.some((kind) => error instanceof kind) || isSystemError(error)
    if (isTold && error instanceof Error) print(error.message, words)
    else {
      const { error: name, error_code: code, frames } = traceError(error)
      print(`this is a fault of the program: ${[name, code].filter(Boolean).join(' ')}`, words)
      for (const frame of frames) console.error(`    at ${frame}`)
    }
    return status
  }
}

/** As `explainer`, for commands of which something goes on running: the process ends. */
export function endingExplainer(failing: Failing): Subcommand['explain'] {
  const explain = explainer(failing)
  return (error, words) => process.exit(explain(error, words))
}

/** Prints why something failed. Lines after the first, such as those of a log, stay as they are. */
export function printError(message: string): void {
  console.error(`error: ${message.split('\n').map(withoutControls).join('\n')}`)
}

/** Of a call of the system, such as a file that is not there; its message names call and path. */
function isSystemError(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error
}
