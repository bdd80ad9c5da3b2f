/** The body of a provider's answer as it comes: `end` after the last bytes of a whole one, `close` after any. */
export interface AnswerBody {
  /** Whether `end` has been reported. */
  readonly readableEnded: boolean
  on(event: 'data', listener: (bytes: Buffer) => void): unknown
  once(event: 'end' | 'close', listener: () => void): unknown
  pause(): unknown
  resume(): unknown
  /** Ends the exchange, and with it the connection, unless the answer has ended. */
  destroy(): unknown
}
