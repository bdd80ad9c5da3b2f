import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startChild } from '../../../src/host/stack/child.ts'
import { emptyLargeLog } from '../../../src/host/stack/large-log.ts'
import { until } from '../../support/stack.ts'

let directory: string
let log: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-large-log-'))
  log = join(directory, 'worker.log')
})
afterEach(() => rmSync(directory, { recursive: true }))

const LARGE = `${'x'.repeat(16 * 1024 * 1024)}\n`

describe('a log that a process is writing to', () => {
  test('above 16 MiB is copied aside and emptied, and the process goes on at its beginning', async () => {
    const child = await startChild({
      file: '/bin/sh',
      args: ['-c', 'echo early; read -r _; echo late'],
      logFile: log,
      stdin: 'pipe',
      extra: 'pipe',
    })
    await until(() => readFileSync(log, 'utf8') === 'early\n')
    appendFileSync(log, LARGE)
    emptyLargeLog(log)
    child.process.stdin?.end('\n')
    await child.ended
    expect(readFileSync(log, 'utf8')).toBe('late\n')
    expect(readFileSync(`${log}.1`, 'utf8') === `early\n${LARGE}`).toBe(true)
    expect(statSync(`${log}.1`).mode & 0o777).toBe(0o600)
  })

  test('that is smaller, or not there, stays as it is', () => {
    emptyLargeLog(log)
    writeFileSync(log, 'a line\n')
    emptyLargeLog(log)
    expect(readFileSync(log, 'utf8')).toBe('a line\n')
    expect(statSync(`${log}.1`, { throwIfNoEntry: false })).toBeUndefined()
  })

  test('that a full disk has no room for a second time stays as it is, and nothing is left of the copy', () => {
    writeFileSync(log, LARGE)
    symlinkSync('/dev/full', `${log}.1`)
    emptyLargeLog(log)
    expect(statSync(log).size).toBe(LARGE.length)
    expect(statSync(`${log}.1`, { throwIfNoEntry: false })).toBeUndefined()
  })
})
