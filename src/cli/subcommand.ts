import type { Command } from 'commander'

/** A subcommand of the program, in a module of its own that is loaded only when needed. */
export interface Subcommand {
  readonly command: Command
  /** Exit status for words that the command does not understand; 1 where absent. */
  readonly usageStatus?: number
  /** Prints why the command failed and returns the exit status. */
  readonly explain: (error: unknown, words: readonly string[]) => number
}
