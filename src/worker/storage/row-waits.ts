import { ownPromise } from '../batching/own-promise.ts'
import type { OperationDeadline } from './operation-deadline.ts'

/** How an operation of a customer whose row is locked is carried out. */
export interface RowWaiter<Result> {
  /** Waits for the row as long as the operation may take. */
  readonly wait: () => Promise<Result>
  /** Waits for it for a moment only; undefined: it is still locked, and nothing was done. */
  readonly tryAgain: () => Promise<Result | undefined>
  /** Whether this end shows that the row could be had. */
  readonly hadRow: (end: PromiseSettledResult<Result>) => boolean
}

/**
 * The customers whose row another transaction keeps locked. One operation of each waits for the row, and the customer's others
 * wait for that one, on no connection. Once it has had the row all others try again; where it gave up, the next of them waits.
 */
export class RowWaits {
  readonly #waiting = new Map<string, Promise<boolean>>()

  /** Whether an operation of the customer waits for the row. */
  has(customerId: string): boolean {
    return this.#waiting.has(customerId)
  }

  /**
   * Carries out an operation that found the row locked, or another one waiting for it.
   * @throws DeadlinePassed and what the operation throws
   */
  async queue<Result>(
    customerId: string,
    { passed }: OperationDeadline,
    waiter: RowWaiter<Result>,
  ): Promise<Result> {
    for (;;) {
      const ahead = this.#waiting.get(customerId)
      if (ahead === undefined) return this.#wait(customerId, waiter)
      // After the wait the row may be locked again.
      if (!(await Promise.race([ownPromise(ahead), passed]))) continue
      const result = await waiter.tryAgain()
      if (result !== undefined) return result
    }
  }

  #wait<Result>(customerId: string, { wait, hadRow }: RowWaiter<Result>): Promise<Result> {
    const result = wait()
    const ended = Promise.allSettled([result]).then(([end]) => {
      this.#waiting.delete(customerId)
      return hadRow(end)
    })
    this.#waiting.set(customerId, ended)
    return result
  }
}
