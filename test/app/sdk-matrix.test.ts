import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createClient, memoryState, type Client } from '../../src/client/index.ts'
import { startProxyProcess, type ProxyProcess } from '../support/proxy-process.ts'
import { SDK_CALLS, type SdkTarget } from '../support/sdk-calls.ts'
import { startStack, type Stack } from '../support/stack.ts'

/** Every SDK through every way that proves the router first: whole and streamed, each answer with a receipt that holds. */

let stack: Stack
let proxy: ProxyProcess
const clients = new Set<Client>()

beforeAll(async () => {
  stack = await startStack()
  const key = join(stack.stateDir, 'tool-key')
  writeFileSync(key, stack.local.api_key)
  const router = ['--router', stack.local.tls_base_url, '--root-key', stack.local.root_key]
  proxy = await startProxyProcess(...router, '--api-key-file', key, '--allow-simulated')
}, 120_000)
afterAll(async () => {
  await Promise.all([...clients].map((client) => client.close()))
  await proxy.stop()
  await stack.stop()
})

/** A way to the router, and the verdicts on the receipts of what went there. */
interface Way {
  readonly target: SdkTarget
  readonly verdicts: () => Promise<readonly boolean[]>
}

/** One client serves every row of its transport, as in an application: a router makes few reports a minute. */
function byLibrary(transport: 'tls' | 'ehbp'): () => Way {
  const made: { client?: Client } = {}
  let verdicts: boolean[] = []
  return () => {
    const { api_key: apiKey, base_url: plain, root_key: root, tls_base_url: secure } = stack.local
    const baseURL = `${transport === 'tls' ? secure : plain}/v1`
    const client = (made.client ??= createClient({
      baseURL,
      transport,
      rootKey: JSON.parse(readFileSync(root, 'utf8')),
      policy: { allowSimulated: true },
      state: memoryState(),
      onReceipt: ({ ok }) => verdicts.push(ok),
    }))
    clients.add(client)
    verdicts = []
    return {
      target: { baseURL, apiKey, fetch: client.fetch },
      verdicts: async () => {
        await client.receipts.settled()
        return verdicts
      },
    }
  }
}

const stateSchema = z.looseObject({ receipts: z.array(z.looseObject({ holds: z.boolean() })) })

/** Only the receipts since now count. */
async function byProxy(): Promise<Way> {
  const read = async () => {
    const state = stateSchema.parse(await (await fetch(`${proxy.url}/verification`)).json())
    return state.receipts.map(({ holds }) => holds)
  }
  const before = (await read()).length
  return {
    target: { baseURL: `${proxy.url}/v1`, apiKey: 'kept-by-the-proxy' },
    verdicts: async () => {
      await expect.poll(read, { timeout: 30_000 }).toHaveLength(before + 1)
      return (await read()).slice(0, 1)
    },
  }
}

const WAYS: Readonly<Record<string, () => Way | Promise<Way>>> = {
  'the library over pinned TLS': byLibrary('tls'),
  'the library with encrypted bodies': byLibrary('ehbp'),
  'the loopback proxy': byProxy,
}

const ROWS = Object.entries(WAYS).flatMap(([way, open]) =>
  Object.entries(SDK_CALLS).flatMap(([sdk, calls]) =>
    Object.entries(calls).map(([form, call]) => ({ way, sdk, form, open, call })),
  ),
)

describe('an SDK through a way that proves the router first', () => {
  test('is each of four, on each of three ways, whole and streamed', () => {
    expect(ROWS).toHaveLength(24)
  })

  test.each(ROWS)('$way: $sdk, $form', { timeout: 60_000 }, async ({ call, open }) => {
    const { target, verdicts } = await open()
    expect(await call(target, 'Hello!')).toContain('You said: Hello!')
    expect(await verdicts()).toEqual([true])
  })

  test.each([false, true])('the loopback proxy: curl, stream %s', async (stream) => {
    const { target, verdicts } = await byProxy()
    const messages = [{ role: 'user', content: 'Hello!' }]
    const url = `${target.baseURL}/chat/completions`
    const body = JSON.stringify({ model: 'glm-5', stream, messages })
    const type = 'content-type: application/json'
    const { stdout } = await promisify(execFile)('curl', ['-sS', url, '-H', type, '-d', body])
    expect(stdout).toContain('receipt_id')
    expect(stdout).toMatch(stream ? /^data: / : /^\{/)
    expect(await verdicts()).toEqual([true])
  })
})
