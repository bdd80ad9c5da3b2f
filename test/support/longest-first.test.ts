import { existsSync } from 'node:fs'
import { expect, it } from 'vitest'
import { LONGEST } from './longest-first.ts'

it('names each file once, and none that is no more', () => {
  expect(LONGEST.filter((path) => !existsSync(path))).toEqual([])
  expect(new Set(LONGEST).size).toBe(LONGEST.length)
})
