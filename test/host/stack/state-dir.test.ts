import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { StartError } from '../../../src/host/stack/start-error.ts'
import { openStateDir, storedSecret } from '../../../src/host/stack/state-dir.ts'

const MODULE = new URL('../../../src/host/stack/state-dir.ts', import.meta.url).href
const directory = mkdtempSync(join(tmpdir(), 'cmr-state-dir-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** What a program says that opens the directory; a process of its own, because it could stand still. */
function open(path: string): string {
  const program = `
    import { openStateDir } from ${JSON.stringify(MODULE)}
    try { console.log('opened', openStateDir(process.argv[1]).path) }
    catch (error) { console.log(error.constructor.name, error.message) }`
  const args = ['--input-type=module', '-e', program, path]
  return spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 60_000 }).stdout.trim()
}

describe('openStateDir', () => {
  test('creates the directory and those above it, for the owner only', () => {
    const path = join(directory, 'new', 'state')
    expect(open(path)).toBe(`opened ${path}`)
    expect(statSync(path).mode & 0o777).toBe(0o700)
    expect(open(path)).toBe(`opened ${path}`)
  })

  test('says why a directory cannot be created', () => {
    const file = join(directory, 'file')
    writeFileSync(file, '')
    const refusals = {
      '/proc/none': "ENOENT: no such file or directory, mkdir '/proc/none'",
      '/proc/none/state': "ENOENT: no such file or directory, mkdir '/proc/none'",
      [file]: `EEXIST: file already exists, mkdir '${file}'`,
      [join(file, 'state')]: `EEXIST: file already exists, mkdir '${file}'`,
    }
    for (const [path, reason] of Object.entries(refusals)) {
      expect(open(path)).toBe(`StartError ${path} cannot be used as a state directory: ${reason}`)
    }
    expect(existsSync('/proc/none')).toBe(false)
  })

  test('says that its lock cannot be opened', () => {
    const path = join(directory, 'no-lock')
    expect(open(join(path, 'lock'))).toBe(`opened ${join(path, 'lock')}`)
    expect(open(path)).toBe(
      `StartError ${path} cannot be used as a state directory: unable to open database file`,
    )
  })

  test('says in a sentence that a directory inside it cannot be created', () => {
    const path = join(directory, 'with-a-file')
    const state = openStateDir(path)
    writeFileSync(join(path, 'log'), '')
    expect(() => state.directory('log')).toThrow(StartError)
    expect(() => state.directory('log')).toThrow(
      `${path} cannot be used as a state directory: EEXIST: file already exists, mkdir '${join(path, 'log')}'`,
    )
  })
})

describe('a stored secret', () => {
  test('is the one that was given last, else the stored one', () => {
    const state = openStateDir(join(directory, 'secrets'))
    const made = storedSecret(state, 'token', undefined)
    expect(storedSecret(state, 'token', undefined)).toBe(made)
    expect(storedSecret(state, 'token', 'given')).toBe('given')
    expect(storedSecret(state, 'token', undefined)).toBe('given')
  })

  test('is made anew where its file is empty, as a machine that lost its power may leave it', () => {
    const state = openStateDir(join(directory, 'emptied'))
    state.write('token', '\n')
    expect(storedSecret(state, 'token', undefined)).toMatch(/^[\w-]{43}$/)
  })

  test.each([
    ['control characters', 'hunter2\u0000ü'],
    ['spaces', 'hunter2 rest'],
  ])('with %s is refused by the name of its file, and not quoted', (what, stored) => {
    const state = openStateDir(join(directory, `with ${what}`))
    state.write('token', stored)
    const attempt = () => storedSecret(state, 'token', undefined)
    expect(attempt).toThrow(StartError)
    const refusal = `${state.file('token')} is damaged: remove it, and a new one is made`
    expect(attempt).toThrow(expect.objectContaining({ message: refusal }))
  })
})
