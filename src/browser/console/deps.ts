import type { Surroundings } from '../verifier/judge-router.ts'

/** What the console takes from its surroundings. */
export interface ConsoleDeps extends Surroundings {
  /** Of the router that served it. */
  readonly origin: string
  /** Calls back every so many milliseconds, until what it returns is called. */
  readonly every: (milliseconds: number, work: () => void) => () => void
}
