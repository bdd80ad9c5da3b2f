import { expect, test } from 'vitest'
import { openFilesLimit } from '../../../src/host/stack/runtime-check.ts'

test('the limit on open files of this very process can be told', () => {
  expect(openFilesLimit()).toBeGreaterThan(0)
})
