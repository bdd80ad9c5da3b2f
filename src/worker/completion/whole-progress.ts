import { ApiError } from '../http/errors.ts'
import type { AnswerRoom } from '../provider/answer-room.ts'
import type { Budget } from '../routing/budget.ts'
import type { PlannedAttempt } from '../routing/plan.ts'

/** A provider's work on an answer that the client does not get. */
export interface LostWork {
  readonly attempt: PlannedAttempt
  /** Number of bytes of the answer to be billed. */
  readonly bytes: number
}

/** The progress of a request whose answer is not streamed. */
export class WholeProgress {
  readonly budget: Budget
  readonly room: AnswerRoom
  /** The attempt whose provider is working on the answer, or has produced it. */
  #asked: PlannedAttempt | undefined

  constructor(budget: Budget, room: AnswerRoom) {
    this.budget = budget
    this.room = room
  }

  /** Runs an attempt. If the provider fails, the attempt costs nothing; if it ends for another reason, it may be billed. */
  async during<T>(attempt: PlannedAttempt, ask: () => Promise<T>): Promise<T> {
    this.#asked = attempt
    this.room.empty()
    try {
      return await ask()
    } catch (error) {
      if (!this.budget.signal.aborted && !(error instanceof ApiError)) this.#asked = undefined
      throw error
    }
  }

  /** To be called when the answer is ready: if it is withheld after this, the client does not pay for it. */
  answered(): void {
    this.#asked = undefined
  }

  /**
   * The work to bill although the request ends with an error: an answer that arrived but that the router does not accept, or
   * the prompt of an attempt in flight when the time limit passed that the client itself had set.
   * @param hurried whether the client had set a shorter time limit than the service's default
   */
  lostWork(error: unknown, hurried: boolean): LostWork | undefined {
    if (this.#asked === undefined || !(error instanceof ApiError)) return undefined
    const { come } = this.room
    const ownTime = hurried && this.budget.expired ? 0 : undefined
    const bytes = error === this.budget.signal.reason ? ownTime : come
    return bytes === undefined ? undefined : { attempt: this.#asked, bytes }
  }
}
