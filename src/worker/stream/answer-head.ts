/** The members at the head of an answer in every format. */
export interface AnswerHead {
  readonly id: string
  /** Unix seconds. */
  readonly created: number
  /** The route that serves the request. */
  readonly model: string
}
