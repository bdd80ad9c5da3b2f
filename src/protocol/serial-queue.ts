/** Runs steps one after another, also after a failed one. Each call resolves or rejects as its step does. */
export type SerialQueue = <Result>(step: () => Promise<Result>) => Promise<Result>

export function createSerialQueue(): SerialQueue {
  let last: Promise<unknown> = Promise.resolve()
  return (step) => {
    const turn = last.then(step)
    last = turn.catch(() => {})
    return turn
  }
}
