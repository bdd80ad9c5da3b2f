import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { openServeLog } from '../../../src/host/serve/serve-log.ts'
import { openStateDir, type StateDir } from '../../../src/host/stack/state-dir.ts'

let directory: string
let state: StateDir
let file: string

beforeEach(() => {
  vi.spyOn(console, 'log').mockImplementation(() => {})
  directory = mkdtempSync(join(tmpdir(), 'cmr-serve-log-'))
  state = openStateDir(directory)
  file = join(state.directory('log'), 'serve.log')
})
afterEach(() => {
  vi.restoreAllMocks()
  rmSync(directory, { recursive: true })
})

describe('the log of a serving router', () => {
  test('has each line with its time, and is readable by its owner alone', () => {
    openServeLog(state, false)('  worker   up')
    expect(readFileSync(file, 'utf8')).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z worker {3}up\n$/)
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  test('is set aside at a start when it is above 16 MiB', () => {
    writeFileSync(file, 'x'.repeat(16 * 1024 * 1024 + 1))
    openServeLog(state, false)('  worker   up')
    expect(statSync(`${file}.1`).size).toBe(16 * 1024 * 1024 + 1)
    expect(readFileSync(file, 'utf8')).toMatch(/ worker {3}up\n$/)
    openServeLog(state, false)('  worker   up again')
    expect(readFileSync(file, 'utf8').trim().split('\n')).toHaveLength(2)
  })

  test('that cannot be written, as on a full disk, leaves the line on the console', () => {
    symlinkSync('/dev/full', file)
    openServeLog(state, false)('  worker   up')
    expect(console.log).toHaveBeenCalledExactlyOnceWith('  worker   up')
  })
})
