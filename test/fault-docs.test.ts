import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const PAGE = readFileSync('docs/faults.md', 'utf8')

/** The names in the last column of the table under a heading. */
function lastColumn(heading: string): string[] {
  const [, section = ''] = PAGE.split(`\n${heading}\n`)
  const [table = ''] = section.split('\n#')
  const cells = table.split('\n').map((line) => line.split('|').at(-2) ?? '')
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name))
}

test('every test that docs/faults.md names as that of a protection exists', () => {
  const names = lastColumn('### Protections and their tests')
  expect(names.length).toBeGreaterThan(40)
  const isThere = (name: string) =>
    existsSync(`test/${name}.test.ts`) || existsSync(`test/${name}.ts`)
  expect(names.filter((name) => !isThere(name))).toEqual([])
})
