import { traceError } from '../protocol/error-trace.ts'
import { withoutControls } from '../protocol/terminal-text.ts'
import type { Subcommand } from './subcommand.ts'

/** A class of errors whose messages are written for the user of the command. */
export type Told = abstract new (...given: never[]) => Error

/** How a command fails. */
export interface Failing {
  /** Error classes whose message is printed. Messages of system errors, such as a missing file, are printed too. */
  readonly told: readonly Told[]
  /** The exit status; 1 when absent. */
  readonly status?: number
  /** Used instead of `printError`. */
  readonly print?: (message: string, words: readonly string[]) => void
}

/**
 * Makes the `explain` of a command. It prints `error: ` and the reason on standard error, in the same format for all
 * commands, so that neither people nor programs mistake it for output. Of an unexpected error it prints only class,
 * code and stack frames: the message may quote input, such as a key.
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

/** Like `explainer`, for commands that leave servers or timers running: ends the process with the exit status. */
export function endingExplainer(failing: Failing): Subcommand['explain'] {
  const explain = explainer(failing)
  return (error, words) => process.exit(explain(error, words))
}

/**
 * Prints why something failed. Keeps line breaks, such as those of a quoted log, and removes other control characters.
 */
export function printError(message: string): void {
  console.error(`error: ${message.split('\n').map(withoutControls).join('\n')}`)
}

/**
 * Whether a system call failed, for example because a file does not exist. The message of such an error names the call
 * and the path.
 */
function isSystemError(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error
}
