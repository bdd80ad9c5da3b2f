import { readdirSync } from 'node:fs'
import { expect, it } from 'vitest'

it('has a test file for each family of the fault matrix', () => {
  const families = readdirSync('test/faults').filter((name) => name.endsWith('-family.ts'))
  const tests = families.map((name) => name.replace('-family.ts', '.test.ts'))
  expect(readdirSync('test/app/faults').toSorted()).toEqual(tests.toSorted())
})
