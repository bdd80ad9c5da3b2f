import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { openFilesLimit } from '../../../src/host/stack/runtime-check.ts'

test('the limit on open files of this very process can be told', () => {
  expect(openFilesLimit()).toBeGreaterThan(0)
})

test.each([
  ['100', true],
  ['0', false],
])('with a limit of %s on core dumps it is %s that a crash writes one', (limit, writes) => {
  const module = new URL('../../../src/host/stack/runtime-check.ts', import.meta.url)
  const code = `import('${module.href}').then((check) => console.log(check.writesCoreDumps()))`
  const script = `ulimit -c ${limit}; exec "$0" --input-type=module -e "$1"`
  const printed = execFileSync('/bin/sh', ['-c', script, process.execPath, code], {
    encoding: 'utf8',
  })
  expect(printed).toBe(`${writes}\n`)
})
