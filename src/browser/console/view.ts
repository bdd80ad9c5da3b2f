import type { Api } from './api.ts'

/** What every view of the console is given. */
export interface ViewProps {
  readonly api: Api
  /** Rises with every look at the router. */
  readonly look: number
  /** Of that look, ms since the epoch. */
  readonly now: number
  /** The session is over. */
  readonly ended: (message: string) => void
}
