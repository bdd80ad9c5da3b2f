import type { Command } from 'commander'

/** A subcommand of the program, in a module of its own that is loaded only when needed. */
export interface Subcommand {
  readonly command: Command
  /** Prints why the command failed and returns the exit status. */
  readonly explain: (error: unknown) => number
}
