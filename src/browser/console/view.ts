import type { Api } from './api.ts'

/** The props of every view. */
export interface ViewProps {
  readonly api: Api
  /** The refresh counter: data is requested again when it changes. */
  readonly look: number
  /** The time of that refresh, ms since the epoch. */
  readonly now: number
  /** Called when the session has ended, with the message to show. */
  readonly ended: (message: string) => void
}
