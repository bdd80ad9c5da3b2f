import { execFile } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { Output } from '../../src/cli/output.ts'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'

const PROGRAM = join(PROJECT_DIR, 'src/cli/main.ts')

/** Runs the program with its output at this place of a shell; answers its status and what it says. */
function cmr(place: string, ...words: string[]) {
  const script = `{ "$@"; echo "status $?" >&2; } ${place}`
  return promisify(execFile)('/bin/sh', ['-c', script, 'sh', process.execPath, PROGRAM, ...words])
}

describe('what a command prints', () => {
  test('is a failure where it cannot be written', async () => {
    const { stderr } = await cmr('> /dev/full', 'connect', 'env')
    expect(stderr).toBe('error: ENOSPC: no space left on device, write\nstatus 1\n')
  })

  test('may find a reader that wants no more of it', async () => {
    const { stderr } = await cmr('| sleep 0', 'release', '--help')
    expect(stderr).toBe('status 0\n')
  })

  test('has the first fault of its stream, and none of the stream of errors', async () => {
    const [out, errors] = [new EventEmitter(), new EventEmitter()]
    const output = new Output(out, errors)
    errors.emit('error', new Error('nobody listens'))
    expect(await output.fault()).toBeUndefined()
    const full = Object.assign(new Error('full'), { code: 'ENOSPC' })
    out.emit('error', full)
    out.emit('error', new Error('later'))
    expect(await output.fault()).toBe(full)
  })
})
