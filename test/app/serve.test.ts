import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createHash, X509Certificate } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readServingFile, SERVING_FILE } from '../../src/host/serve/serving-file.ts'
import { EMBEDDED_LEDGERS } from '../../src/host/stack/ledger-dir.ts'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { openStateDir } from '../../src/host/stack/state-dir.ts'
import { envelopeSchema } from '../../src/protocol/envelope.ts'
import { errorOf } from '../support/answers.ts'
import { keepAway } from '../support/kept-away.ts'
import { startPacedProvider, type PacedProvider } from '../support/paced-provider.ts'
import {
  ADMIN_TOKEN,
  chatBody,
  getOverTls,
  runServe,
  shownCertificate,
  startServe,
  type Serving,
} from '../support/serve.ts'
import { until } from '../support/stack.ts'
import { startLoad } from '../support/steady-load.ts'
import { TRUST_BUNDLE_URL } from '../support/trust-bundle-url.ts'

const PROGRAM = join(PROJECT_DIR, 'src/cli/main.ts')

let provider: PacedProvider

beforeAll(async () => {
  provider = await startPacedProvider()
})
afterAll(() => provider.close())

function config(models: Readonly<Record<string, number | 'held'>>, service: object = {}): object {
  return {
    service: {
      name: 'r',
      trust_bundle_url: TRUST_BUNDLE_URL,
      allow_simulated: true,
      allow_unattested: ['nova'],
      ...service,
    },
    providers: {
      nova: {
        base_url: provider.baseUrl,
        api_key_env: 'NOVA_API_KEY',
        attestation: { adapter: 'none' },
      },
    },
    routes: Object.entries(models).map(([model_key, pace]) => ({
      model_key,
      provider: 'nova',
      upstream_model: `paced-${pace}`,
      type: 'chat',
      pricing: { currency: 'eur', input_per_mtok: 1, output_per_mtok: 1 },
    })),
  }
}

function keyFile(key: string): string {
  const file = join(tmpdir(), `cmr-key-${process.pid}`)
  writeFileSync(file, `${key}\n`)
  chmodSync(file, 0o600)
  return file
}

/** Whether the public listener shows the key that the attestation names. */
async function showsAttestedKey(router: Serving): Promise<boolean> {
  const { raw } = await shownCertificate(router.at.https_port)
  const spki = new X509Certificate(raw).publicKey.export({ type: 'spki', format: 'der' })
  const digest = createHash('sha256').update(spki).digest('hex')
  const text = await (await router.fetch('/attestation')).text()
  return text.includes(digest)
}

describe('the serve command', () => {
  test('refuses with all reasons together, and status 1', async () => {
    const file = keyFile('x')
    chmodSync(file, 0o644)
    const run = runServe({
      config: config({ m: 0 }, { allow_simulated: false, allow_unattested: [] }),
      args: ['--workers', '2', '--http', '0.0.0.0:0'],
      env: { NOVA_API_KEY_FILE: file, ADMIN_TOKEN: '', STORAGE: 'durable-object' },
    })
    expect(await run.ended).toBe(1)
    expect(run.output().trim().split('\n')).toEqual([
      'error: production mode refuses to start:',
      '  service.allow_simulated: is not set, and this machine has no SEV-SNP reports (/sys/kernel/config/tsm/report)',
      '  providers.nova.attestation: is "none" in production mode; name the provider in service.allow_unattested to accept it',
      '  providers.nova.api_key_env: the secret NOVA_API_KEY is missing',
      '  service.release: is needed in production mode',
      `  NOVA_API_KEY_FILE: ${file} is open to every user (mode 0644): chmod 600 it`,
      '  ADMIN_TOKEN: is missing; set it, or ADMIN_TOKEN_FILE',
      '  --workers: 2 processes need STORAGE=sqlite or STORAGE=postgres; files of Durable Objects have one writer',
      '  --http: 0.0.0.0:0 is not on loopback; plain HTTP would show prompts to the network',
    ])
    await run.remove()
  })
})

describe('a start', () => {
  test('goes on when a reload is asked for in its first moments, and takes up what is new then', async () => {
    const run = runServe({ config: config({ m: 0 }), env: { ADMIN_TOKEN, NOVA_API_KEY: 'k' } })
    // It has read its configuration by now.
    await until(() => existsSync(join(run.stateDir, 'lock')))
    writeFileSync(run.configFile, JSON.stringify(config({ m: 0, later: 0 })))
    run.signal('SIGHUP')
    await until(() => run.hasEnded() || existsSync(join(run.stateDir, SERVING_FILE)))
    const { http_url: url } = readServingFile(run.stateDir)
    await expect.poll(async () => (await fetch(`${url}/v1/models`)).text()).toContain('"later"')
    await run.remove()
  })

  test('is refused, by name, without the ledger that was served from, and with a damaged one', async () => {
    const env = { NOVA_API_KEY: 'k', ADMIN_TOKEN, STORAGE: 'durable-object' }
    const serving = await startServe({ config: config({ m: 0 }), env })
    serving.signal('SIGTERM')
    expect(await serving.ended).toBe(0)
    const ledger = join(serving.stateDir, 'storage', EMBEDDED_LEDGERS['durable-object'])
    const refusal = async () => {
      const run = runServe({ config: config({ m: 0 }), env, stateDir: serving.stateDir })
      expect(await run.ended).toBe(1)
      const last = run.output().trim().split('\n').at(-1)
      await run.remove()
      return last
    }
    rmSync(ledger)
    expect(await refusal()).toBe(
      `error: ${ledger}, the ledger, is missing, and a router has served from it: put it back, or restore a backup; ` +
        `to begin with an empty ledger, remove ${join(serving.stateDir, 'ledger-in-use')}`,
    )
    writeFileSync(ledger, 'x'.repeat(8_192))
    expect(await refusal()).toBe(
      `error: ${ledger}, the ledger, is damaged (file is not a database): restore it from a backup (docs/operations.md, "Backup and restore")`,
    )
    await serving.remove()
  })
})

describe('a serving router', () => {
  let router: Serving
  let secret: string

  beforeAll(async () => {
    secret = keyFile('first-key')
    router = await startServe({
      config: config({ quick: 0, slow: 'held' }),
      env: { NOVA_API_KEY_FILE: secret },
      args: ['--drain-seconds', '20'],
    })
  })
  afterAll(() => router.remove())

  test('says loudly that its platform is simulated, on the screen and in its log', () => {
    const log = readFileSync(join(router.stateDir, 'log/serve.log'), 'utf8')
    for (const text of [router.output(), log]) {
      expect(text).toContain('!!!!!!!! SIMULATED PLATFORM !!!!!!!!')
      expect(text).toContain('without attestation, by service.allow_unattested: nova')
    }
    expect(router.at.simulated).toBe(true)
  })

  test('serves HTTPS with the key that its attestation names', async () => {
    expect(await showsAttestedKey(router)).toBe(true)
    expect((await getOverTls(router.at.https_port, '/healthz'))['status']).toBe(200)
  })

  test('keeps secrets out of the environment of its parts', () => {
    for (const pid of Object.values(router.at.parts)) {
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8')
      expect(environment).not.toContain(ADMIN_TOKEN)
      expect(environment).not.toContain('first-key')
    }
  })

  test('takes over configuration and secrets on SIGHUP without a failed request', async () => {
    const load = startLoad(4, askQuick)
    keyFile('second-key')
    writeFileSync(router.configFile, JSON.stringify(config({ quick: 0, slow: 'held', added: 0 })))
    router.signal('SIGHUP')
    const body = chatBody('added')
    await until(async () => (await router.fetch('/v1/chat/completions', body)).status === 200)
    writeFileSync(router.configFile, JSON.stringify(config({ quick: 0 }, { name: 7 })))
    router.signal('SIGHUP')
    await until(() => router.output().includes('the last good configuration stays'))
    await load.further(20)
    const statuses = await load.stop()
    expect(statuses.length).toBeGreaterThan(4)
    expect(statuses.filter((status) => status !== 200)).toEqual([])
    expect(provider.keys.at(-1)).toBe('Bearer second-key')
    expect(router.output()).toContain(
      `reload refused, the last good configuration stays: ${router.configFile}: service.name: `,
    )
    expect((await router.fetch('/v1/chat/completions', body)).status).toBe(200)
  })

  test('stays in production mode whatever is written to its file, and when its daemon is restarted', async () => {
    const before = await boundConfiguration()
    const written = readFileSync(router.configFile, 'utf8')
    const nova = { base_url: 'http://127.evil.example/v1', attestation: { adapter: 'none' } }
    const unsafe = { ...config({ quick: 0 }, { mode: 'local' }), providers: { nova } }
    writeFileSync(router.configFile, JSON.stringify(unsafe))
    const { enclave = Number.NaN } = router.at.parts
    process.kill(enclave, 'SIGKILL')
    await until(() => readServingFile(router.stateDir).parts['enclave'] !== enclave)
    await until(async () => (await askQuick()) === 200)
    expect(await boundConfiguration()).toBe(before)
    router.signal('SIGHUP')
    const refusal = 'service.mode: is "local"; leave it out, or use "npm start" for a local stack'
    await until(() => router.output().includes(refusal))
    expect(await askQuick()).toBe(200)
    expect(await boundConfiguration()).toBe(before)
    writeFileSync(router.configFile, written)
  })

  test('uses nothing of a configuration that its daemon refuses', async () => {
    const refused = JSON.stringify(config({ quick: 0 }, { tls: { chain_file: '/refused.pem' } }))
    // The program that reads the file first takes the last of two members; the daemon takes neither.
    writeFileSync(router.configFile, refused.replace('"name":"r"', '"name":"r","name":"r"'))
    router.signal('SIGHUP')
    await until(() => router.output().includes('duplicate member name'))
    const accepted = config({ quick: 0 }, { tls: { chain_file: '/accepted.pem' } })
    writeFileSync(router.configFile, JSON.stringify(accepted))
    router.signal('SIGHUP')
    await until(() => router.output().includes('/accepted.pem cannot be read (ENOENT)'))
    expect(router.output()).not.toContain('/refused.pem')
    writeFileSync(router.configFile, JSON.stringify(config({ quick: 0, slow: 'held', back: 0 })))
    router.signal('SIGHUP')
    const body = chatBody('back')
    await until(async () => (await router.fetch('/v1/chat/completions', body)).status === 200)
  })

  async function boundConfiguration(): Promise<string> {
    const envelope = await (await router.fetch('/attestation')).json()
    const { report_data_binding: binding } = envelopeSchema.parse(envelope)
    if (binding?.label !== 'cmr/report-data/v2') throw new Error('not of version 2')
    return binding.configuration_sha256
  }

  test('moves to a new TLS key on SIGUSR2 without a failed request', async () => {
    const before = await shownCertificate(router.at.https_port)
    // A connection that has asked nothing yet when its process stops is closed; clients open another one.
    const plain = startLoad(3, () => askQuick().catch(askQuick))
    const secure = startLoad(3, () => listOverTls().catch(listOverTls))
    router.signal('SIGUSR2')
    await until(() => router.output().includes('certificate in service until'))
    await Promise.all([plain.further(10), secure.further(10)])
    const statuses = [...(await plain.stop()), ...(await secure.stop())]
    expect(statuses.filter((status) => status !== 200)).toEqual([])
    expect((await shownCertificate(router.at.https_port)).fingerprint).not.toBe(before.fingerprint)
    expect(await showsAttestedKey(router)).toBe(true)
  })

  async function askQuick(): Promise<number> {
    const closing = { ...chatBody('quick'), headers: { connection: 'close' } }
    const answer = await router.fetch('/v1/chat/completions', closing)
    await answer.text()
    return answer.status
  }

  async function listOverTls(): Promise<number> {
    return Number((await getOverTls(router.at.https_port, '/v1/models'))['status'])
  }

  test('says at once that a new key has to wait while its daemon is away', async () => {
    const printed = router.output().length
    const letBack = keepAway(router.stateDir, 'enclave')
    await until(() => router.output().slice(printed).includes('enclave  died: signal SIGKILL'))
    router.signal('SIGUSR2')
    const away = 'tls      the enclave daemon is being restarted: try again; the certificate in'
    await until(() => router.output().includes(away))
    letBack()
    await until(async () => (await askQuick()) === 200)
    expect(await showsAttestedKey(router)).toBe(true)
  })

  test('brings a killed worker back; connections wait for it', async () => {
    const { parts } = readServingFile(router.stateDir)
    process.kill(parts['worker'] ?? 0, 'SIGKILL')
    await until(() => /worker +died/.test(router.output()))
    expect(await getOverTls(router.at.https_port, '/v1/models')).toMatchObject({ status: 200 })
    expect(router.output()).toMatch(/worker +died: signal SIGKILL; back in 0.5 s/)
  })

  test('ends running streams on SIGTERM and answers new requests 503 meanwhile', async () => {
    const stream = await router.fetch('/v1/chat/completions', chatBody('slow', true))
    expect(stream.status).toBe(200)
    router.signal('SIGTERM')
    await until(() => router.output().includes('draining, at most 20 s'))
    let refused = new Response()
    await until(async () => {
      const closing = { ...chatBody('quick'), headers: { connection: 'close' } }
      refused = await router.fetch('/v1/chat/completions', closing)
      if (refused.status === 200) await refused.text()
      return refused.status === 503
    })
    expect(refused.status).toBe(503)
    expect([refused.headers.get('retry-after'), refused.headers.get('connection')]).toEqual([
      '5',
      'close',
    ])
    expect((await errorOf(refused)).code).toBe('service_unavailable')
    const overTls = await getOverTls(router.at.https_port, '/healthz')
    expect(overTls).toMatchObject({ status: 503, 'retry-after': '5', connection: 'close' })

    provider.letGo()
    const text = await stream.text()
    expect(text).toContain('9 ')
    expect(text).toContain('"receipt_id"')
    expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true)
    expect(await router.ended).toBe(0)
    rmSync(secret)
  })
})

describe('the request for a certificate', () => {
  test('is refused where a router that was killed left its file behind, and nothing is sent to whoever has its number now', async () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'cmr-killed-'))
    const stranger = spawn('sleep', ['60'], { stdio: 'ignore' })
    const serving = { http_url: 'http://127.0.0.1:1', https_port: 1, simulated: true, root_key: '' }
    const left = { ...serving, pid: stranger.pid, parts: {} }
    writeFileSync(join(stateDir, SERVING_FILE), JSON.stringify(left))
    const args = ['serve', 'csr', '--new-key', '--state-dir', stateDir]
    const { status, stderr } = spawnSync(process.execPath, [PROGRAM, ...args], { encoding: 'utf8' })
    const refusal = `error: no router is serving here: one that was killed left ${SERVING_FILE} behind`
    expect([status, stderr.trim(), stranger.signalCode]).toEqual([1, refusal, null])
    stranger.kill()
    rmSync(stateDir, { recursive: true })
  })

  test('is refused where the router has no domains, before a new key is made for nothing', async () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'cmr-no-domains-'))
    const state = openStateDir(stateDir)
    const router = spawn('sleep', ['60'], { stdio: 'ignore' })
    const serving = { http_url: 'http://127.0.0.1:1', https_port: 1, simulated: true, root_key: '' }
    const file = { ...serving, pid: router.pid, parts: {} }
    state.write(SERVING_FILE, JSON.stringify(file))
    const args = ['serve', 'csr', '--new-key', '--state-dir', stateDir]
    const { status, stderr } = spawnSync(process.execPath, [PROGRAM, ...args], { encoding: 'utf8' })
    const refusal = 'error: there is no request: set service.tls.domains'
    expect([status, stderr.trim(), router.signalCode]).toEqual([1, refusal, null])
    router.kill()
    rmSync(stateDir, { recursive: true })
  })
})

describe('a router whose disk is full', () => {
  test('goes on: a part that dies is back, and what could not be noted is noted later', async () => {
    const router = await startServe({ config: config({ quick: 0 }), env: { NOVA_API_KEY: 'key' } })
    const [log, unfinished] = ['log/serve.log', `${SERVING_FILE}.new`].map((name) => {
      const file = join(router.stateDir, name)
      rmSync(file, { force: true })
      symlinkSync('/dev/full', file)
      return file
    })
    const answers = async () => {
      const answer = router.fetch('/v1/chat/completions', chatBody('quick'))
      return (await answer.catch(() => undefined))?.status === 200
    }
    process.kill(router.at.parts['enclave'] ?? Number.NaN, 'SIGKILL')
    const kept = `${SERVING_FILE} stays as it was: ENOSPC: no space left on device, write`
    await until(() => router.output().includes(kept) || router.hasEnded())
    await until(answers)
    expect([router.hasEnded(), readServingFile(router.stateDir)]).toEqual([false, router.at])

    for (const file of [log, unfinished]) rmSync(file ?? '')
    process.kill(router.at.parts['worker'] ?? Number.NaN, 'SIGKILL')
    const noted = () => readServingFile(router.stateDir).parts
    await until(() => noted()['worker'] !== router.at.parts['worker'])
    expect([noted()['enclave'] !== router.at.parts['enclave'], await answers()]).toEqual([
      true,
      true,
    ])
    expect(readFileSync(join(router.stateDir, 'log/serve.log'), 'utf8')).toContain('worker   died')
    router.signal('SIGTERM')
    expect(await router.ended).toBe(0)
    await router.remove()
  })
})
