import type { Command } from 'commander'

/** Exit status where a command's words, or for some commands its input, cannot be used; 1 is then the answer "no". */
export const EXIT_UNUSABLE = 2

/** A subcommand of the program, in a module of its own that is loaded only when needed. */
export interface Subcommand {
  readonly command: Command
  /** Prints why the command failed and returns the exit status. */
  readonly explain: (error: unknown, words: readonly string[]) => number
}
