/** Work that can be interrupted: it yields wherever other requests may run. */
export type Steps<Result> = Generator<void, Result, void>

/** Wraps work that is short enough to be done in one go. */
// oxlint-disable-next-line require-yield -- that is its meaning
export function* inOneStep<Result>(work: () => Result): Steps<Result> {
  return work()
}

/** Does the work without interruption. */
export function runAtOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

/** Does the work with a pause after each step. */
export async function runWithPauses<Result>(
  steps: Steps<Result>,
  pause: () => Promise<void>,
): Promise<Result> {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
    await pause()
  }
}
