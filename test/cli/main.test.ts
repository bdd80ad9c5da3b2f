import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'

const PROGRAM = join(PROJECT_DIR, 'src/cli/main.ts')

function cmr(...args: string[]) {
  return promisify(execFile)(process.execPath, [PROGRAM, ...args])
}

describe('the program', () => {
  test('lists its commands, without loading any of them', async () => {
    const { stdout } = await cmr('--help')
    expect(stdout).toContain('Usage: confidential-model-router')
    expect(stdout).toMatch(/^ {2}serve +serve in production mode$/m)
  })

  test('refuses a command that it does not have, with the list of those it has', async () => {
    await expect(cmr('sevre')).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/unknown command 'sevre'[^]*Did you mean serve[^]*Commands:/),
    })
  })

  test('does not take a name of JavaScript for a command', async () => {
    await expect(cmr('constructor')).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining("unknown command 'constructor'"),
    })
  })

  test('names the whole command in the help of a part of it', async () => {
    const { stdout } = await cmr('release', 'measure', '--help')
    expect(stdout).toContain('Usage: confidential-model-router release measure')
  })
})
