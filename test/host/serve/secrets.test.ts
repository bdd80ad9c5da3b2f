import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readSecretFile, readSecrets, withoutSecrets } from '../../../src/host/serve/secrets.ts'

let directory: string

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-secrets-'))
})
afterAll(() => rmSync(directory, { recursive: true }))

function file(name: string, text: string, mode = 0o600): string {
  const path = join(directory, name)
  writeFileSync(path, text)
  chmodSync(path, mode)
  return path
}

describe('secrets', () => {
  test('come from the variable, or from the file beside it, without their last line break', () => {
    const environment = { A: 'one', B_FILE: file('b', 'two\n'), C: 'unasked', E: 'five\n', F: ' ' }
    expect(readSecrets(['A', 'B', 'D', 'E', 'F'], environment)).toEqual({
      values: { A: 'one', B: 'two', E: 'five' },
      problems: [],
    })
  })

  test('may be in a file that a group shares', () => {
    expect(readSecrets(['A'], { A_FILE: file('group', 'x', 0o640) }).values).toEqual({ A: 'x' })
  })

  test.each([
    ['every user may read', 0o644, '0644'],
    ['every user may write', 0o602, '0602'],
  ])('are refused from a file that %s', (_what, mode, octal) => {
    const path = file('open', 'x', mode)
    expect(readSecrets(['A'], { A_FILE: path })).toEqual({
      values: {},
      problems: [`A_FILE: ${path} is open to every user (mode ${octal}): chmod 600 it`],
    })
  })

  test('are refused when given twice, empty or unreadable', () => {
    const empty = file('empty', ' \n')
    const missing = join(directory, 'missing')
    const environment = { A: 'x', A_FILE: empty, B_FILE: empty, C_FILE: missing }
    expect(readSecrets(['A', 'B', 'C'], environment)).toEqual({
      values: {},
      problems: [
        'A: is given twice, by A and by A_FILE',
        `B_FILE: ${empty} is empty`,
        `C_FILE: ${missing} cannot be read (ENOENT)`,
      ],
    })
  })

  test('are refused from a pipe, which nobody may ever write, and from a directory', () => {
    const pipe = join(directory, 'pipe')
    execFileSync('mkfifo', ['-m', '600', pipe])
    expect(readSecrets(['A', 'B'], { A_FILE: pipe, B_FILE: directory })).toEqual({
      values: {},
      problems: [
        `A_FILE: ${pipe} is not a regular file`,
        `B_FILE: ${directory} is not a regular file`,
      ],
    })
  })

  test('may be in one file alone, whose problem is told by the name under which it was given', () => {
    expect(readSecretFile('--key-file', file('alone', 'x\n'))).toEqual({ value: 'x' })
    const path = file('alone-and-open', 'x', 0o644)
    expect(readSecretFile('--key-file', path)).toEqual({
      problem: `--key-file: ${path} is open to every user (mode 0644): chmod 600 it`,
    })
  })

  test('are taken out of what children inherit', () => {
    expect(withoutSecrets({ A: 'x', PATH: '/bin' }, ['A'])).toEqual({ PATH: '/bin' })
  })
})
