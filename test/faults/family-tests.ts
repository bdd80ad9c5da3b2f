import { beforeAll, describe, expect, test } from 'vitest'
import type { AnyFamily, Verdict } from './trial.ts'

/** The shortened form of the fault matrix; `npm run faults` runs all of it and prints what it saw. */
const choice = { short: true }

/**
 * A test for each trial of a family. The trials of a family run side by side; where a test may be tried again, its trial
 * is repeated with those whose names hold its name alone, because clocks of two seconds are short on a busy machine.
 */
export function testFamily({ name, list, run }: AnyFamily): void {
  describe.skipIf(list(choice).length === 0)(`the family ${name}`, () => {
    let verdicts: readonly Verdict[]

    beforeAll(async () => {
      verdicts = await run(choice)
    }, 180_000)

    test.for(list(choice))(
      '$name',
      { timeout: 60_000 },
      async ({ name: trial, expected }, { task }) => {
        const repeated = (task.result?.retryCount ?? 0) > 0
        const seen = repeated ? await run({ ...choice, named: trial }) : verdicts
        expect(seen.find((verdict) => verdict.trial === trial)?.seen).toBe(expected)
      },
    )
  })
}
