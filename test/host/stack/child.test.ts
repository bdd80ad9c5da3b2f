import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startChild } from '../../../src/host/stack/child.ts'

let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-child-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

async function say(logFile: string): Promise<string> {
  const args = ['-c', 'echo started']
  const child = await startChild({ file: '/bin/sh', args, logFile, stdin: 'ignore', extra: 'pipe' })
  return child.ended
}

describe('a child of the stack', () => {
  test('is started although the directory of its log was removed, which is made again', async () => {
    const logFile = join(directory, 'log', 'worker.log')
    expect(await say(logFile)).toBe('exit status 0')
    expect(readFileSync(logFile, 'utf8')).toBe('started\n')
  })

  test('is started without a log where none can be opened', async () => {
    writeFileSync(join(directory, 'log'), 'no directory')
    expect(await say(join(directory, 'log', 'worker.log'))).toBe('exit status 0')
  })
})
