import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Child } from '../../src/host/stack/child.ts'
import { startStandin } from '../../src/host/stack/start-standin.ts'
import { standinAt, type Standin } from '../support/standin.ts'

const directory = mkdtempSync(join(tmpdir(), 'cmr-standin-'))
let child: Child
let origin: string
let standin: Standin

beforeAll(async () => {
  const started = await startStandin(undefined, join(directory, 'standin.log'))
  child = started.child
  origin = `http://127.0.0.1:${started.ready.port}`
  standin = standinAt(origin)
})
afterAll(async () => {
  await child.stop(1_000)
  rmSync(directory, { recursive: true })
})
beforeEach(() => standin.reset())

function ask(body: object): Promise<Response> {
  return fetch(`${origin}/nova/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...body }),
  })
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

describe('the stand-in provider', () => {
  test('says the same words every time', async () => {
    const first: unknown = await (await ask({})).json()
    expect(first).toMatchObject({
      choices: [{ message: { content: 'Hello from the stand-in provider. You said: Hi' } }],
      usage: { prompt_tokens: 5, completion_tokens: 12, total_tokens: 17 },
    })
  })

  test.each([{ reasoning_effort: 'low' }, { chat_template_kwargs: { enable_thinking: true } }])(
    'thinks when it is asked to: %o',
    async (wish) => {
      expect(await (await ask(wish)).text()).toContain('A stand-in does not think')
    },
  )

  test('takes null for tools, as of a client that writes what it was not given', async () => {
    const answer = await ask({ tools: null, tool_choice: null, response_format: null })
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('Hi')])
  })

  test('fills in the first tool and the schema it is given', async () => {
    const parameters = { type: 'object', properties: { days: { type: 'integer' } } }
    const tools = [{ type: 'function', function: { name: 'forecast', parameters } }]
    expect(await (await ask({ tools })).text()).toContain('{\\"days\\":1}')
    const format = { type: 'json_schema', json_schema: { name: 'x', schema: parameters } }
    expect(await (await ask({ response_format: format })).text()).toContain('{\\"days\\":1}')
  })

  test('keeps the exact bytes of both directions', async () => {
    const received = await (await ask({ stream: true })).text()
    const [exchange] = await standin.exchanges()
    const sent = Buffer.from(exchange?.request.base64 ?? '', 'base64').toString()
    expect(JSON.parse(sent)).toMatchObject({ model: 'm', stream: true })
    expect(exchange).toMatchObject({
      provider: 'nova',
      path: '/v1/chat/completions',
      request: { sha256: digest(sent) },
      response: { status: 200, complete: true, sha256: digest(received) },
    })
  })

  test('gives a scripted answer as often as it says, to its provider only', async () => {
    await standin.script({ provider: 'other', status: 500 })
    await standin.script({
      provider: 'nova',
      times: 2,
      status: 429,
      headers: { 'retry-after': '7' },
    })
    const answers = [await ask({}), await ask({}), await ask({})]
    expect(answers.map((answer) => answer.status)).toEqual([429, 429, 200])
    expect(answers[0]?.headers.get('retry-after')).toBe('7')
  })

  test('cuts a connection when the script says so', async () => {
    await standin.script({ frames: ['data: {"half'], end: 'reset' })
    const answer = await ask({ stream: true })
    await expect(answer.text()).rejects.toThrow('terminated')
    const [exchange] = await standin.exchanges()
    expect(exchange?.response).toMatchObject({ complete: false, bytes: 12 })
  })
})
