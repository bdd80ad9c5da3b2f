import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { PROVES } from '../../src/verify/check-names.ts'

it('explains every check in the documentation, in the words of the verdict', () => {
  const page = readFileSync(new URL('../../docs/verification.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| `(\w+)` +\| (.+?) +\|$/gm)].map(([, name, text]) => [
    name,
    text,
  ])
  expect(Object.fromEntries(rows)).toMatchObject(PROVES)
})
