import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startStack, temporaryDirectory, type Stack } from '../support/stack.ts'

let stack: Stack
let tmp: string

/** Everything the stack writes lies in its state directory or in its temporary one. */
beforeAll(async () => {
  tmp = temporaryDirectory()
  stack = await startStack({ env: { TMPDIR: tmp } })
})
afterAll(() => stack.stop())

function filesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .map((name) => join(directory, name))
    .filter((path) => statSync(path).isFile())
}

test('no private key lies on the disk while the stack serves', async () => {
  const body = JSON.stringify({ model: 'glm-5', messages: [{ role: 'user', content: 'Hi' }] })
  const answer = await stack.fetch('/v1/chat/completions', { method: 'POST', body })
  expect(answer.status).toBe(200)
  const files = [...filesBelow(stack.stateDir), ...filesBelow(tmp)]
  expect(files.length).toBeGreaterThan(5)
  const secret = /-----BEGIN (EC |RSA )?PRIVATE KEY-----\n|"d"\s*:\s*"[A-Za-z0-9_-]{43}"/
  expect(files.filter((path) => secret.test(readFileSync(path, 'latin1')))).toEqual([])
})
