import { beforeAll, describe, expect, test } from 'vitest'
import { FAMILIES } from '../faults/families.ts'
import type { Verdict } from '../faults/trial.ts'

/** The fault matrix in its shortened form; `npm run faults` runs all of it and prints what it saw. */
const choice = { short: true }
const SHORTENED = FAMILIES.filter(({ list }) => list(choice).length > 0)

describe.each(SHORTENED)('$name', ({ list, run }) => {
  const verdicts = new Map<string, Verdict>()

  beforeAll(async () => {
    for (const verdict of await run(choice)) verdicts.set(verdict.trial, verdict)
  }, 180_000)

  test.each(list(choice))('$name', ({ name, expected }) => {
    expect(verdicts.get(name)?.seen).toBe(expected)
  })
})
