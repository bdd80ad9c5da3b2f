/**
 * Gathers calls that arrive close together and runs them in one synchronous stretch, so that SQLite
 * commits, and waits for the disk, once for all of them.
 *
 * @param run answers every ask, in order; what it throws becomes the failure of each
 * @param defer calls back once the calls already on their way have arrived
 */
export function createGroup<Ask, Answer>(
  run: (asks: readonly Ask[]) => readonly Answer[],
  defer: (flush: () => void) => void,
): (ask: Ask) => Promise<Answer> {
  let waiting: Waiter<Ask, Answer>[] = []

  function flush() {
    const group = waiting
    waiting = []
    try {
      const answers = run(group.map((waiter) => waiter.ask))
      for (const [index, waiter] of group.entries()) waiter.settle(answers, index)
    } catch (error) {
      for (const waiter of group) waiter.reject(error)
    }
  }

  return (ask) => {
    if (waiting.length === 0) defer(flush)
    return new Promise((resolve, reject) => {
      const settle = (answers: readonly Answer[], index: number) => {
        const answer = answers[index]
        if (answer === undefined) reject(new Error('internal error: a batch was left unanswered'))
        else resolve(answer)
      }
      waiting.push({ ask, settle, reject })
    })
  }
}

interface Waiter<Ask, Answer> {
  readonly ask: Ask
  readonly settle: (answers: readonly Answer[], index: number) => void
  readonly reject: (reason: unknown) => void
}
