import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { exchange, exchanges, type Answered } from '../leaks/exchanges.ts'
import { found, MARKERS, needle, type Needle } from '../leaks/markers.ts'
import { LEAK_MODELS, startLeakProvider } from '../leaks/provider.ts'
import type { FaultProvider } from '../support/fault-provider.ts'
import { startStack, until, type Stack } from '../support/stack.ts'

/** Whatever clients and providers say goes past each other and nowhere else. */

let provider: FaultProvider
let stack: Stack
let stateDir: string
let answers: readonly Answered[]
let metrics: string
let commandLines: string
let needles: readonly Needle[]

/** What a client gets back because it is its answer. */
const ANSWER: readonly string[] = ['completion', 'reasoning', 'completionTool']
/** Where the start command keeps the first customer's key and the admin token, on purpose. */
const KEPT: Readonly<Record<string, string>> = {
  'first-customer.json': 'api key',
  'local.json': 'api key, admin token',
  'admin-token': 'admin token',
}

beforeAll(async () => {
  provider = await startLeakProvider()
  stateDir = mkdtempSync(join(tmpdir(), 'cmr-leaks-'))
  stack = await startStack({
    stateDir,
    config: config(provider.port),
    env: { LEAK_TEST_PROVIDER_KEY: MARKERS.providerKey },
  })
  const { api_key: apiKey, admin_token: adminToken } = stack.local
  needles = [
    ...Object.entries(MARKERS).map(([name, marker]) => needle(name, marker)),
    needle('api key', apiKey.slice(apiKey.lastIndexOf('_') + 1)),
    needle('admin token', adminToken),
    needle('private key', ['PRIVATE', 'KEY-----'].join(' ')),
  ]
  answers = await Promise.all(exchanges(adminToken).map((asked) => exchange(stack, asked)))
  await faults()
  const authorization = `Bearer ${adminToken}`
  metrics = await (await stack.fetch('/admin/metrics', { headers: { authorization } })).text()
  commandLines = Object.values(stack.localNow().pids)
    .map((pid) => commandLineOf(pid))
    .join('\n')
}, 120_000)

afterAll(async () => {
  await stack.stop()
  await provider.close()
  rmSync(stateDir, { recursive: true, force: true })
})

/** The daemon goes away in the middle of streams, and the worker after it. */
async function faults(): Promise<void> {
  const asked = exchanges(stack.local.admin_token).filter(({ name }) => name.startsWith('sound'))
  const { enclave, worker } = stack.localNow().pids
  const running = asked.map((one) => exchange(stack, one).catch(() => undefined))
  process.kill(enclave, 'SIGKILL')
  const without = asked.map((one) => exchange(stack, one))
  const seen = await Promise.all([...running, ...without])
  answers = [...answers, ...seen.filter((answer) => answer !== undefined)]
  await until(() => stack.localNow().pids.enclave !== enclave)
  process.kill(worker, 'SIGKILL')
  await until(() => stack.localNow().pids.worker !== worker)
}

function config(port: number): object {
  const pricing = { currency: 'eur', input_per_mtok: 1, output_per_mtok: 2 }
  const route = (model: string) => ({
    model_key: model,
    provider: 'alpha',
    upstream_model: model,
    type: 'chat',
    pricing,
  })
  const attestation = { adapter: 'none' }
  return {
    service: { name: 'r', mode: 'local', timeouts: { idle_ms: 1_000, first_delta_ms: 1_000 } },
    providers: {
      alpha: {
        base_url: `http://127.0.0.1:${port}/alpha`,
        api_key_env: 'LEAK_TEST_PROVIDER_KEY',
        attestation,
      },
      standin: { base_url: 'http://standin.localhost/standin/v1', attestation },
    },
    routes: [
      ...LEAK_MODELS.map(route),
      {
        model_key: 'whisper',
        provider: 'standin',
        upstream_model: 'w',
        type: 'transcription',
        pricing: { currency: 'eur', billing_unit: 'audio_minute', unit_amount: 0.006 },
      },
    ],
  }
}

function commandLineOf(pid: number | undefined): string {
  const path = `/proc/${pid}/cmdline`
  return existsSync(path) ? readFileSync(path, 'latin1') : ''
}

/** Every file below the state directory: databases with their logs, and the logs of all processes. */
function leaksOnDisk(): string[] {
  return readdirSync(stateDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'worker.js')
    .flatMap(({ parentPath, name }) => {
      const kept = KEPT[name]?.split(', ') ?? []
      return found(needles, readFileSync(join(parentPath, name)))
        .filter((leak) => !kept.includes(leak))
        .map((leak) => `${name}: ${leak}`)
    })
}

describe('what clients and providers said', () => {
  test('reached the provider, and the answers, which shows that the scan can find it', () => {
    const [call] = provider.calls('sound')
    const seen = found(needles, Buffer.from(`${call?.headers}${call?.body}`))
    expect(seen).toEqual(
      expect.arrayContaining(['prompt', 'system', 'toolArguments', 'providerKey']),
    )
    const sound = answers.find(({ asked }) => asked === 'sound, whole')
    expect(found(needles, Buffer.from(sound?.text ?? ''))).toEqual(
      expect.arrayContaining([...ANSWER]),
    )
    for (const text of ['prompt', 'hex', 'base64'] as const) {
      const hidden = Buffer.from(`ab${MARKERS.prompt}cd`)
      const shown = text === 'prompt' ? hidden : Buffer.from(hidden.toString(text))
      expect(found(needles, shown)).toEqual(['prompt'])
    }
  })

  test('comes back in no answer but as the completion itself', () => {
    const leaks = answers.flatMap(({ asked, status, text }) =>
      found(needles, Buffer.from(text))
        .filter((leak) => !(status === 200 && ANSWER.includes(leak)))
        .map((leak) => `${asked} (${status}): ${leak}`),
    )
    expect(leaks).toEqual([])
    expect(answers.length).toBeGreaterThan(60)
  })

  test('is in no metric, no command line and nothing the start command prints', () => {
    expect(found(needles, Buffer.from(metrics))).toEqual([])
    expect(found(needles, Buffer.from(commandLines))).toEqual([])
    // The screen shows the customer's key, to be copied.
    expect(
      found(needles, Buffer.from(stack.output())).filter((leak) => leak !== 'api key'),
    ).toEqual([])
  })

  test('is in no file while the stack runs, and in none when it has ended', async () => {
    const files = readdirSync(stateDir, { recursive: true, encoding: 'utf8' })
    expect(files.some((name) => name.endsWith('.sqlite-wal'))).toBe(true)
    expect(files).toEqual(expect.arrayContaining(['log/worker.log', 'log/enclave.log']))
    expect(leaksOnDisk()).toEqual([])
    await stack.stop()
    expect(leaksOnDisk()).toEqual([])
  })

  test('left the worker without a single request it failed on by itself', () => {
    const log = readFileSync(join(stateDir, 'log/worker.log'), 'utf8')
    expect(log.match(/"code":"internal".*/g) ?? []).toEqual([])
    expect(answers.filter(({ status }) => status === 500)).toEqual([])
  })
})
