import { ApiError } from '../http/errors.ts'
import type { AnswerRoom } from '../provider/answer-room.ts'
import type { Budget } from '../routing/budget.ts'
import type { PlannedAttempt } from '../routing/plan.ts'

/** What a provider has done for an answer that its client does not get. */
export interface LostWork {
  readonly attempt: PlannedAttempt
  /** Bytes of the answer to be billed. */
  readonly bytes: number
}

/** How far a request has come whose answer is not streamed. */
export class WholeProgress {
  readonly budget: Budget
  readonly room: AnswerRoom
  /** The attempt whose provider works on the answer, or has made it. */
  #asked: PlannedAttempt | undefined

  constructor(budget: Budget, room: AnswerRoom) {
    this.budget = budget
    this.room = room
  }

  /** Runs an attempt. One that fails by its provider has cost nothing; one that ends for another reason may have. */
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

  /** The answer is ready. Where it is withheld from here on, that is not for its client to pay. */
  answered(): void {
    this.#asked = undefined
  }

  /**
   * What is to be paid although the request ends with an error: an answer that the router does not take once it has come, and
   * the prompt of what was under way when the time was over that the caller itself had set.
   * @param hurried whether it had set a shorter time than the service's own
   */
  lostWork(error: unknown, hurried: boolean): LostWork | undefined {
    if (this.#asked === undefined || !(error instanceof ApiError)) return undefined
    const { come } = this.room
    const ownTime = hurried && this.budget.expired ? 0 : undefined
    const bytes = error === this.budget.signal.reason ? ownTime : come
    return bytes === undefined ? undefined : { attempt: this.#asked, bytes }
  }
}
