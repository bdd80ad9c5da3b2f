import { ownPromise } from '../batching/own-promise.ts'
import type { OperationDeadline } from './operation-deadline.ts'

/** How to carry out an operation whose customer's row is locked. */
export interface RowWaiter<Result> {
  /** Waits for the row as long as the operation may take. */
  readonly wait: () => Promise<Result>
  /** Tries for a moment only; undefined: the row is still locked, and nothing was done. */
  readonly tryAgain: () => Promise<Result | undefined>
  /** Whether this end proves that the operation got the row. */
  readonly hadRow: (end: PromiseSettledResult<Result>) => boolean
}

/**
 * The customers whose row another transaction keeps locked. Only one operation of each customer waits for the row; the
 * customer's other operations wait for that one, without a connection. Once it got the row, all others try again; if it gave
 * up, the next one waits for the row.
 */
export class RowWaits {
  readonly #waiting = new Map<string, Promise<boolean>>()

  /** Whether an operation of the customer is waiting for the row. */
  has(customerId: string): boolean {
    return this.#waiting.has(customerId)
  }

  /**
   * Carries out an operation that found the row locked, or another operation waiting for it.
   * @throws DeadlinePassed when the deadline passes first
   * @throws what the operation throws
   */
  async queue<Result>(
    customerId: string,
    { passed }: OperationDeadline,
    waiter: RowWaiter<Result>,
  ): Promise<Result> {
    for (;;) {
      const ahead = this.#waiting.get(customerId)
      if (ahead === undefined) return this.#wait(customerId, waiter)
      // If the operation ahead gave up, or the row is locked again by now, the loop starts over.
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
