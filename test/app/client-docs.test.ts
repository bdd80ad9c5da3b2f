import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { examplesOf, outputOf, type Example } from '../support/docs-examples.ts'
import { startFakeRouter, type FakeRouter } from '../support/fake-router.ts'
import { freePort } from '../support/free-port.ts'
import { becomesTrue, startStack, type Stack } from '../support/stack.ts'
import { makeWorld } from '../support/synthetic-world.ts'

/**
 * Every block of the pages about clients, run in the folder of a user who has the package, a key and a release root. Two things
 * differ from what is written: a simulated platform is accepted, and the package is this checkout.
 */

const BROWSERS = 'Browsers'

let stack: Stack
let home: string
let env: NodeJS.ProcessEnv
let port: number

beforeAll(async () => {
  stack = await startStack()
  port = await freePort()
  home = mkdtempSync(join(tmpdir(), 'cmr-client-docs-'))
  const { api_key: API_KEY, root_key: root, tls_base_url: ROUTER } = stack.local
  const bin = join(home, '.local/bin')
  const settings = join(home, '.config/confidential-model-router')
  for (const folder of [bin, settings]) mkdirSync(folder, { recursive: true })
  writeProgram(join(bin, 'confidential-model-router'), PROGRAM)
  writeProgram(join(bin, 'npx'), 'exec "$@"')
  symlinkSync(join(PROJECT_DIR, 'node_modules'), join(home, 'node_modules'))
  for (const folder of [home, settings]) copyFileSync(root, join(folder, 'release-root.jwk.json'))
  for (const file of [join(home, 'key.txt'), join(settings, 'key')]) writeFileSync(file, API_KEY)
  const PATH = `${bin}:${process.env['PATH']}`
  env = { HOME: home, PATH, API_KEY, ROUTER, PORT: `${port}` }
}, 120_000)
afterAll(async () => {
  await stack.stop()
  rmSync(home, { recursive: true, force: true })
})

/** Accepts the simulated platform wherever one can, and has the proxy listen on a free port. */
const PROGRAM = `case "$1 $2" in
  proxy*) set -- "$@" --allow-simulated --port "$PORT" ;;
  'verify attestation' | 'verify receipt') set -- "$@" --allow-simulated ;;
esac
exec ${process.execPath} ${join(PROJECT_DIR, 'src/cli/main.ts')} "$@"`

function writeProgram(path: string, script: string): void {
  writeFileSync(path, `#!/bin/sh\n${script}\n`)
  chmodSync(path, 0o755)
}

/** A block with what this test changes in it. */
function adapted(code: string): string {
  return code
    .replaceAll('createClient({', 'createClient({ policy: { allowSimulated: true },')
    .replaceAll("'confidential-model-router/client'", `'${PROJECT_DIR}/src/client/index.ts'`)
    .replaceAll('127.0.0.1:8790', `127.0.0.1:${port}`)
    .replaceAll('https://router.example', stack.local.tls_base_url)
}

const output = ({ code, language }: Example) =>
  outputOf({ language, code: adapted(code) }, { cwd: home, env })

/** Runs a command that goes on until it is ended, as long as some work takes. */
async function during<T>(command: string, sign: string, work: () => Promise<T>): Promise<T> {
  const child = spawn('bash', ['-c', `exec ${adapted(command)}`], { cwd: home, env })
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (part: Buffer) => (printed += part.toString()))
  }
  await becomesTrue(() => printed.includes(sign) || child.exitCode !== null)
  try {
    expect(printed).toContain(sign)
    return await work()
  } finally {
    child.kill('SIGTERM')
    if (child.exitCode === null) await once(child, 'close')
  }
}

const APPLICATION = examplesOf('client.md').filter(({ heading }) => heading !== BROWSERS)

describe('the page for application developers', () => {
  const EXPECTED = [
    /You said: Hello!\n[^]* holds\n/,
    /You said: Hello!.*You said: Hello!\n.*You said: Hello!/s,
    /^\S{36} true \d+ .*client_request_digest/,
    /^nothing was sent: \[ 'trust_bundle_environment' \]\n$/,
  ]

  test.each(APPLICATION.map((example, index) => ({ ...example, index })))(
    'has examples that work: $heading, $index',
    { timeout: 120_000 },
    async ({ index, ...example }) => {
      expect(await output(example)).toMatch(EXPECTED[index] ?? /^never$/)
    },
  )

  test('has no example that is not run', () => {
    expect(APPLICATION.map(({ heading, language }) => `${language} ${heading}`)).toEqual([
      'js Quick start',
      'js Quick start',
      'js Receipts',
      'js Errors',
    ])
    // Run in a browser by test/long/browser-client.test.ts.
    expect(examplesOf('client.md').filter(({ heading }) => heading === BROWSERS)).toHaveLength(1)
  })
})

describe('the page for tool users', () => {
  const [start, ...others] = examplesOf('proxy.md')
  const commands = others.filter(({ language }) => language === 'sh')
  const unit = others.find(({ language }) => language === 'ini')

  test('has commands that work as they stand, while its proxy runs', { timeout: 120_000 }, () =>
    during(start?.code ?? '', 'is proven', async () => {
      const outputs: string[] = []
      for (const command of commands) outputs.push(await output(command))
      expect(outputs).toEqual([
        expect.stringContaining('You said: Hello!'),
        expect.stringContaining('"proven": true'),
        expect.stringContaining('claude is disconnected'),
      ])
    }),
  )

  test('has a systemd unit whose program starts', { timeout: 120_000 }, () => {
    const line = /^ExecStart=((?:.*\\\n)*.*)$/m.exec(unit?.code ?? '')?.[1] ?? ''
    const command = line.replaceAll('%h', home)
    expect(command).toContain('--api-key-file')
    return during(command, 'is proven', async () => {
      const state = await fetch(`http://127.0.0.1:${port}/verification`)
      expect(await state.json()).toHaveProperty('proven', true)
    })
  })
})

describe('the page for security officers', () => {
  const EXPECTED = [
    /^VALID ON A SIMULATED PLATFORM.*tls_key/s,
    /^$/,
    /^VALID ON A SIMULATED PLATFORM.*client_response_digest/s,
    /client_request_digest/,
  ]

  test('has commands that work in their order', { timeout: 120_000 }, async () => {
    const examples = examplesOf('security-officers.md')
    expect(examples).toHaveLength(EXPECTED.length)
    for (const [index, example] of examples.entries()) {
      // The last one shows a command that fails, and says so.
      const failing =
        index === EXPECTED.length - 1
          ? { language: 'sh', code: `set +o pipefail\n${example.code}` }
          : example
      expect(await output({ ...example, ...failing })).toMatch(EXPECTED[index] ?? /^never$/)
    }
  })
})

describe('the page for security officers, in front of an impostor', () => {
  let impostor: FakeRouter

  beforeAll(async () => {
    impostor = await startFakeRouter(await makeWorld())
  }, 60_000)
  afterAll(() => impostor.close())

  const runAgainst = (ROUTER: string, code: string) =>
    outputOf({ language: 'sh', code }, { cwd: home, env: { ...env, ROUTER } })

  test('takes no evidence for the key of the connection that nobody has verified', async () => {
    const [, byHand] = examplesOf('security-officers.md')
    await expect(runAgainst(impostor.baseURL, byHand?.code ?? '')).rejects.toThrow('Command failed')
    for (const file of ['attested', 'pin']) expect(existsSync(join(home, file))).toBe(false)
  })

  test('sends him neither the API key nor the question', { timeout: 120_000 }, async () => {
    const [, byHand, asking] = examplesOf('security-officers.md')
    await runAgainst(stack.local.tls_base_url, byHand?.code ?? '')
    const before = impostor.received.length
    await expect(runAgainst(impostor.baseURL, asking?.code ?? '')).rejects.toThrow('Command failed')
    expect(impostor.received.slice(before)).toEqual([])
  })
})

test('the page about the verifier page has a command that builds it, and prints its digest', async () => {
  const [build] = examplesOf('verifier-page.md')
  const code = build?.code ?? ''
  const built = await outputOf({ language: 'sh', code }, { cwd: PROJECT_DIR, env: process.env })
  expect(built).toMatch(/[0-9a-f]{64}/)
  expect(readFileSync(join(PROJECT_DIR, 'dist/verifier.html'), 'utf8')).toMatch(/^<!doctype html>/i)
})
