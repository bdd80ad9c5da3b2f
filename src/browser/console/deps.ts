import type { PageDeps } from '../verifier/judge-router.ts'

/** What the console needs from the browser. */
export interface ConsoleDeps extends PageDeps {
  /** The origin of the router that served the page. */
  readonly origin: string
  /** Calls `work` at an interval, until the returned function is called. */
  readonly every: (milliseconds: number, work: () => void) => () => void
}
