/**
 * The body of a provider's answer as it is received. `end` is reported after the last byte of a complete body, `close`
 * after every body, complete or cut off.
 */
export interface AnswerBody {
  /** Whether `end` has been reported. */
  readonly readableEnded: boolean
  on(event: 'data', listener: (bytes: Buffer) => void): unknown
  once(event: 'end' | 'close', listener: () => void): unknown
  pause(): unknown
  resume(): unknown
  /** Aborts the exchange and closes its connection, unless the answer has already ended. */
  destroy(): unknown
}

/** The events of an `AnswerBody` that is an `EventEmitter`. */
export interface AnswerEvents {
  data: [Buffer]
  end: []
  close: []
}
