import type { Command } from 'commander'

/**
 * Exit status when the arguments of a command, or for some commands its input, are invalid. For those commands, 1 means
 * the answer "no".
 */
export const EXIT_UNUSABLE = 2

/** A subcommand of the program, in a module of its own that is loaded only when needed. */
export interface Subcommand {
  readonly command: Command
  /** Prints why the command failed and returns the exit status. */
  readonly explain: (error: unknown, words: readonly string[]) => number
}
