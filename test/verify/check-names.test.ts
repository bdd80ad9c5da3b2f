import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { PROVES } from '../../src/verify/check-names.ts'

it('has every check in the tables of docs/verification.md, in the words of the verdict', () => {
  const page = readFileSync(new URL('../../docs/verification.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| `(\w+)` +\| (.+?) +\|$/gm)].map(
    ([, name, text]) => `${name}: ${text}`,
  )
  const checks = Object.entries(PROVES).map(([name, text]) => `${name}: ${text}`)
  expect(checks.filter((check) => !rows.includes(check))).toEqual([])
})
