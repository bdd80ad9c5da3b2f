import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { completionIn } from '../support/answers.ts'
import { startStack, type Stack } from '../support/stack.ts'

const run = promisify(execFile)

let stack: Stack

beforeAll(async () => {
  stack = await startStack()
})
afterAll(() => stack.stop())

/** The paragraph of the screen that begins with a word. */
function paragraph(word: string): string {
  return (
    stack
      .output()
      .split('\n\n')
      .find((text) => text.startsWith(word)) ?? ''
  )
}

describe('the welcome screen', () => {
  test('names the address, the TLS address and the key', () => {
    expect(stack.output()).toContain(stack.local.base_url)
    expect(stack.output()).toContain(stack.local.tls_base_url)
    expect(stack.output()).toContain(stack.local.api_key)
  })

  test('names the console, and where its token is', () => {
    expect(stack.output()).toContain(
      `console   ${stack.local.base_url}/console  (sign in with admin_token of local.json)`,
    )
  })

  test('has a line for each part that is up', () => {
    for (const [name, pid] of Object.entries(stack.local.pids)) {
      expect(stack.output()).toMatch(new RegExp(`${name} +up: port \\d+, pid ${pid}\\n`))
    }
  })

  test('has a curl command that works as printed', async () => {
    const { stdout } = await run('/bin/sh', ['-c', paragraph('curl ')])
    expect(completionIn(stdout).service.receipt_id).toBeDefined()
  })

  test('has two lines that verify the enclave and both hops of the latest receipt', async () => {
    const commands = [...stack.output().matchAll(/^ *(STATE_DIR=\S+ npm run verify -- .*)$/gm)]
    const said = []
    for (const [, command = ''] of commands) {
      const { stdout } = await run('/bin/sh', ['-c', command], { cwd: PROJECT_DIR })
      said.push(stdout)
    }
    expect(said).toHaveLength(2)
    expect(said[0]).toMatch(/ok +tls_key/)
    expect(said[1]).toMatch(/ok +provider_attested/)
  })

  test('has a client snippet that works as printed', async () => {
    const args = ['--input-type=module', '--eval', paragraph('import OpenAI')]
    const { stdout } = await run(process.execPath, args, { cwd: PROJECT_DIR })
    expect(stdout).toMatch(/Hello from the stand-in provider.*receipt_id/s)
  })
})
