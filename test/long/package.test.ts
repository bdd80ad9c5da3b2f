import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { readLocalFile } from '../../src/host/stack/local-file.ts'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { startTcpBalancer } from '../support/tcp-balancer.ts'
import { startManInTheMiddle } from '../support/man-in-the-middle.ts'
import { becomesTrue } from '../support/stack.ts'

/** The package as npm makes it, installed into an empty folder and used by its public names alone. */

const run = promisify(execFile)
const INSTALL_MS = 180_000

const packedSchema = z
  .array(z.object({ filename: z.string(), files: z.array(z.object({ path: z.string() })) }))
  .length(1)

/** Other runtimes that applications have; none of them comes with this project. */
const RUNTIMES = [
  { name: 'Node 20', variable: 'CMR_NODE_20', command: 'node', flags: [] },
  { name: 'Bun', variable: 'CMR_BUN', command: 'bun', flags: [] },
  { name: 'Deno', variable: 'CMR_DENO', command: 'deno', flags: ['run', '-A'] },
].map((one) => ({ ...one, program: process.env[one.variable] ?? installed(one.command) }))

function installed(command: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(':')
  const outside = folders.filter((path) => !path.includes('node_modules'))
  return outside.map((path) => join(path, command)).find((path) => existsSync(path))
}

let sources = 1
let folder: string
let files: readonly string[]
let router: ChildProcess | undefined

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'cmr-package-'))
  const packed = await run('npm', ['pack', '--json', '--pack-destination', folder], {
    cwd: PROJECT_DIR,
  })
  const [pack] = packedSchema.parse(JSON.parse(packed.stdout.slice(packed.stdout.indexOf('[\n'))))
  files = pack?.files.map(({ path }) => path) ?? []
  mkdirSync(join(folder, 'app'))
  writeFileSync(join(folder, 'app/package.json'), '{"private": true, "type": "module"}')
  await run(
    'npm',
    ['install', '--no-audit', '--no-fund', '--prefer-offline', join(folder, pack?.filename ?? '')],
    {
      cwd: join(folder, 'app'),
    },
  )
}, INSTALL_MS)

afterAll(async () => {
  if (router?.pid !== undefined && router.exitCode === null) {
    const closed = once(router, 'close')
    // npx hands no signal on: its whole group gets it.
    process.kill(-router.pid, 'SIGTERM')
    await closed
  }
  rmSync(folder, { recursive: true, force: true })
})

function inApp(program: string, ...args: string[]) {
  return run(program, args, { cwd: join(folder, 'app'), env: ownEnvironment() })
}

/** Without this checkout's programs: npx finds those that the package brought. */
function ownEnvironment(): NodeJS.ProcessEnv {
  const path = (process.env['PATH'] ?? '').split(':').filter((one) => !one.includes(PROJECT_DIR))
  return {
    ...process.env,
    PATH: path.join(':'),
    PORT: '0',
    TLS_PORT: '0',
    STATE_DIR: join(folder, 'state'),
  }
}

describe('the npm package', () => {
  test('holds compiled programs, types and pages, and no TypeScript, test or build tool', () => {
    expect(files).toEqual(
      expect.arrayContaining([
        'lib/cli/main.js',
        'lib/worker.js',
        'lib/verifier.html',
        'lib/console.html',
        'lib/verify/index.d.ts',
        'config/local.json',
      ]),
    )
    const foreign = files.filter(
      (path) => !/^(lib|config|docs)\/|^[A-Z]+\.md$|^LICENSE$|^package\.json$/.test(path),
    )
    expect(foreign).toEqual([])
    expect(files.filter((path) => /(?<!\.d)\.ts$|^lib\/cli\/build/.test(path))).toEqual([])
  })

  test('brings no package that only tests or builds use', async () => {
    const { stdout } = await inApp('npm', 'ls', '--all', '--parseable')
    const brought = stdout.split('\n').map((path) => path.replace(/^.*node_modules\//, ''))
    expect(brought).toContain('zod')
    for (const name of [
      'esbuild',
      'jose',
      'eventsource-parser',
      '@copilotkit/aimock',
      'typescript',
      'vitest',
    ]) {
      expect(brought).not.toContain(name)
    }
  })

  test('has the program under both names, and lists every subcommand', async () => {
    for (const name of ['confidential-model-router', 'cmr']) {
      const { stdout } = await inApp('npx', name, '--help')
      for (const command of ['start', 'serve', 'admin', 'verify', 'proxy', 'release', 'image']) {
        expect(stdout).toMatch(new RegExp(`^  ${command}\\b`, 'm'))
      }
    }
  })

  test('has everything that each of its commands imports', async () => {
    const commands = [
      'start',
      'serve',
      'admin',
      'verify',
      'proxy',
      'connect',
      'disconnect',
      'release',
      'image',
    ]
    const helps = commands.map((command) => inApp('npx', 'cmr', command, '--help'))
    for (const { stdout } of await Promise.all(helps)) expect(stdout).toContain('Usage: ')
  })

  test('refuses to build an image outside a checkout', async () => {
    await expect(inApp('npx', 'cmr', 'image')).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('an image is built from a checkout of the repository'),
    })
  })

  test('starts a router that answers, and its verifier verifies the receipt', async () => {
    router = spawn('npx', ['confidential-model-router', 'start'], {
      cwd: join(folder, 'app'),
      env: ownEnvironment(),
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [router.stdout, router.stderr]) {
      stream?.on('data', (part: Buffer) => (output += part.toString()))
    }
    await becomesTrue(() => output.includes(' is up ') || router?.exitCode !== null)
    expect(output).toContain(' is up ')
    const local = readLocalFile(join(folder, 'state'))
    writeFileSync(join(folder, 'app/ask.js'), ASK)
    const { stdout } = await inApp('node', 'ask.js', local.base_url, local.api_key, local.root_key)
    expect(JSON.parse(stdout)).toEqual({ ok: true, failed: [], tampered: ['receipt_signature'] })
  })

  describe.each(RUNTIMES)('has a client that works under $name', ({ program, flags }) => {
    // Which is skipped where it is not installed: on PATH, or where $variable says.
    test.skipIf(program === undefined).each(['tls', 'ehbp'])(
      'with the transport "%s", and sends nothing to a man in the middle',
      { timeout: 120_000 },
      async (transport) => {
        const local = readLocalFile(join(folder, 'state'))
        // A router makes few reports a minute for one source, so that each run is another one.
        const base = new URL(transport === 'ehbp' ? local.base_url : local.tls_base_url)
        const relay = await startTcpBalancer([Number(base.port)], `127.0.0.${++sources}`)
        const address = `${base.protocol}//127.0.0.1:${relay.port}`
        const middle = await startManInTheMiddle({ baseURL: address })
        writeFileSync(join(folder, 'app/ask-proven.js'), ASK_PROVEN)
        const args = [...flags, 'ask-proven.js', address, local.api_key, local.root_key, transport]
        const trusting = { NODE_EXTRA_CA_CERTS: join(folder, 'authority.pem') }
        writeFileSync(trusting.NODE_EXTRA_CA_CERTS, middle.authorityPem)
        const cwd = join(folder, 'app')
        const env = { ...ownEnvironment(), ...trusting, MIDDLE: middle.baseURL }
        const { stdout } = await run(program ?? '', args, { cwd, env })
        middle.close()
        relay.close()
        expect(JSON.parse(stdout)).toEqual({
          whole: [200, true],
          streamed: [200, true],
          refused: ['trust_bundle_environment'],
          middle: transport === 'ehbp' ? 200 : ['tls_key'],
        })
        expect(middle.read.length).toBeGreaterThan(0)
        expect(middle.read.join()).not.toContain('private question')
      },
    )
  })

  test('passes a type check of code that imports it', async () => {
    writeFileSync(
      join(folder, 'app/use.ts'),
      `import { verifyReceipt, type ReceiptResult } from 'confidential-model-router/verify'
       export const result: Promise<ReceiptResult> = verifyReceipt('', { now: 0, jwks: {}, evidence: new Map(), router: 'signature_only' })
       import { createClient, type Client } from 'confidential-model-router/client'
       export const client: Client = createClient({ baseURL: 'https://router.example', rootKey: {} })
       // @ts-expect-error -- a number is no receipt
       export const wrong = verifyReceipt(1)`,
    )
    const flags = [
      '--noEmit',
      '--strict',
      '--target',
      'es2024',
      '--module',
      'nodenext',
      '--lib',
      'es2024,dom',
    ]
    await run(join(PROJECT_DIR, 'node_modules/.bin/tsc'), [...flags, 'use.ts'], {
      cwd: join(folder, 'app'),
    })
    expect(readFileSync(join(folder, 'app/use.ts'), 'utf8')).toContain('verifyReceipt')
  })
})

const ASK = `
import { readFileSync } from 'node:fs'
import { verifyReceipt } from 'confidential-model-router/verify'
const [base, key, rootFile] = process.argv.slice(2)
const headers = { authorization: 'Bearer ' + key, 'content-type': 'application/json' }
const body = JSON.stringify({ model: 'glm-5', messages: [{ role: 'user', content: 'hello' }] })
const answer = await (await fetch(base + '/v1/chat/completions', { method: 'POST', headers, body })).json()
const { receipt } = await (await fetch(base + '/v1/receipts/' + answer.service.receipt_id, { headers })).json()
const jwks = await (await fetch(base + '/.well-known/jwks.json')).json()
const claims = JSON.parse(Buffer.from(receipt.split('.')[1], 'base64url').toString())
const { sha256 } = claims.router_attestation.evidence_raw
const envelope = new Uint8Array(await (await fetch(base + '/attestation/' + sha256)).arrayBuffer())
const options = {
  now: Date.now(),
  jwks,
  evidence: new Map([[sha256, envelope]]),
  simulated: 'any',
  router: { rootJwk: JSON.parse(readFileSync(rootFile, 'utf8')), environments: ['local'] },
  expected: { id: answer.service.receipt_id },
}
const names = (checks) => checks.filter(({ ok }) => !ok).map(({ name }) => name)
const { ok, checks } = await verifyReceipt(receipt, options)
const other = receipt.slice(0, -8) + (receipt.at(-8) === 'A' ? 'B' : 'A') + receipt.slice(-7)
const tampered = names((await verifyReceipt(other, options)).checks)
console.log(JSON.stringify({ ok, failed: names(checks), tampered }))
`

const ASK_PROVEN = `
import { readFileSync } from 'node:fs'
import { createClient, memoryState } from 'confidential-model-router/client'
const [baseURL, key, rootFile, transport] = process.argv.slice(2)
const rootKey = JSON.parse(readFileSync(rootFile, 'utf8'))
const headers = { authorization: 'Bearer ' + key, 'content-type': 'application/json' }
const messages = [{ role: 'user', content: 'a private question' }]
const init = (stream) => ({ method: 'POST', headers, body: JSON.stringify({ model: 'glm-5', stream, messages }) })
const clientOf = (baseURL, policy) =>
  createClient({ baseURL, rootKey, policy, state: memoryState(), ...(transport ? { transport } : {}) })
const ask = (client, url, stream) => client.fetch(url + '/v1/chat/completions', init(stream))
const client = clientOf(baseURL, { allowSimulated: true })
const verdict = async (stream) => {
  const answer = await ask(client, baseURL, stream)
  await answer.text()
  return [answer.status, (await client.receipts.of(answer)).ok]
}
const whole = await verdict(false)
const streamed = await verdict(true)
const failure = (error) => error.failed ?? String(error)
const strict = clientOf(baseURL, {})
const refused = await ask(strict, baseURL, false).then(({ status }) => status, failure)
const other = clientOf(process.env.MIDDLE, { allowSimulated: true })
const middle = await ask(other, process.env.MIDDLE, false).then(({ status }) => status, failure)
await Promise.all([client.close(), strict.close(), other.close()])
console.log(JSON.stringify({ whole, streamed, refused, middle }))
process.exit(0)
`
