import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { execPath } from 'node:process'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { freePort } from '../support/free-port.ts'

const PAGE = readFileSync(join(PROJECT_DIR, 'docs/operations.md'), 'utf8')

/** The shell blocks of the page's first part, but for what brings the dependencies that are here already. */
function blocks(): string[] {
  const [, part = ''] = PAGE.split('## From a fresh machine to a serving router')
  const [first = ''] = part.split('\n## ')
  return [...first.matchAll(/```sh\n([^]*?)```/g)]
    .map(([, block = '']) => block)
    .filter((block) => block !== 'npm ci\n')
}

describe('the operations page, followed line by line', () => {
  let home: string
  let output: string
  let status: number | null
  let pid: number

  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'cmr-operations-'))
    const [http, https] = [await freePort(), await freePort()]
    const script = blocks().join('\n').replaceAll('8080', `${http}`).replaceAll('8443', `${https}`)
    const shell = spawn('bash', ['-euo', 'pipefail', '-c', script], {
      cwd: PROJECT_DIR,
      // A group of its own, so that a router that a failed command left behind can be ended with it.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        HOME: home,
        PATH: `${dirname(execPath)}:${process.env['PATH']}`,
        // Only how soon its many commands begin depends on that.
        NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
        HTTP_ADDRESS: `127.0.0.1:${http}`,
        HTTPS_ADDRESS: `127.0.0.1:${https}`,
      },
    })
    pid = shell.pid ?? 0
    const ended = new Promise<number | null>((resolve) => shell.once('close', resolve))
    const said = await Promise.all([text(shell.stdout), text(shell.stderr)])
    output = said.join('\n')
    status = await ended
  }, 120_000)
  afterAll(() => {
    try {
      process.kill(-pid, 'SIGKILL')
    } catch {
      // All of it has ended.
    }
    rmSync(home, { recursive: true, force: true })
  })

  test('ends without a failed command', () => {
    expect([status, output]).toEqual([0, expect.any(String)])
  })

  test('ends in a router in production mode that serves, and says that it is simulated', () => {
    expect(output).toContain('!!!!!!!! SIMULATED PLATFORM !!!!!!!!')
    expect(output).toContain('Confidential Model Router is serving')
    expect(output).toContain('"object":"chat.completion"')
  })

  test('has the ledger of the first router in the restored one', () => {
    expect(output).toMatch(/"total_count":\s*1/)
  })
})
