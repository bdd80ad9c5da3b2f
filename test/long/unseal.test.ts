import { execFile } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connectGuest, type GuestConnection } from '../../src/cli/unseal/guest-connection.ts'
import { signUnsealDocument, type UnsealTerms } from '../../src/cli/unseal/sign-document.ts'
import { makeSigningKey } from '../../src/enclave/release/signing-key.ts'
import { AdminApi } from '../../src/host/stack/admin-api.ts'
import { readServingFile, SERVING_FILE } from '../../src/host/serve/serving-file.ts'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { completionIn } from '../support/answers.ts'
import { startBroker, writeHosts } from '../support/broker-process.ts'
import { startManInTheMiddle } from '../support/man-in-the-middle.ts'
import { startPacedProvider, type PacedProvider } from '../support/paced-provider.ts'
import { makeSealedWorld, SECRETS, type SealedWorld } from '../support/sealed.ts'
import { ADMIN_TOKEN, chatBody, makeKey, runServe, type ServeRun } from '../support/serve.ts'
import { becomesTrue, until } from '../support/stack.ts'

let provider: PacedProvider
let world: SealedWorld
const runs: ServeRun[] = []

beforeAll(async () => {
  provider = await startPacedProvider()
  world = await makeSealedWorld(provider.baseUrl)
})
afterAll(async () => {
  await Promise.all(runs.map((run) => run.remove()))
  provider.close()
  world.remove()
})

const NONCE = 'ab'.repeat(32)

/** A router that starts sealed, on a state directory that outlives it. */
async function startSealed(stateDir: string): Promise<ServeRun> {
  // What a killed one left behind.
  rmSync(join(stateDir, SERVING_FILE), { force: true })
  const run = runServe({ config: world.config, stateDir, args: ['--sealed'] })
  runs.push(run)
  await becomesTrue(() => run.hasEnded() || existsSync(join(stateDir, SERVING_FILE)))
  if (run.hasEnded()) throw new Error(run.output())
  return run
}

const addressOf = ({ stateDir }: ServeRun) =>
  `https://127.0.0.1:${readServingFile(stateDir).https_port}`

const standardFlags = () => ({
  '--root-key': world.at('root.jwk.json'),
  '--operator-key': world.at('operator.private.jwk.json'),
  '--secrets': world.at('secrets.json'),
  '--configuration': world.at('router.json'),
  '--state': 'none',
})

/** Runs the command and answers its status and first line. */
async function unseal(address: string, changes: Readonly<Record<string, string>> = {}) {
  const flags = Object.entries({ ...standardFlags(), ...changes }).flat()
  const args = ['unseal', address, '--allow-simulated', ...flags]
  const program = join(PROJECT_DIR, 'src/cli/main.ts')
  return promisify(execFile)(process.execPath, [program, ...args]).then(
    ({ stdout }) => ({ status: 0, line: stdout.split('\n')[0] }),
    ({ code, stdout, stderr }) => ({ status: code, line: `${stdout}${stderr}`.split('\n')[0] }),
  )
}

async function attestedTerms(connection: GuestConnection, nonce: string): Promise<UnsealTerms> {
  await connection.get(`/attestation?nonce=${nonce}`)
  return {
    nonce,
    tls_spki_sha256: connection.tlsSpkiSha256,
    configuration_sha256: world.configurationSha256,
    secrets: SECRETS,
  }
}

async function post(connection: GuestConnection, document: string) {
  const { status, body } = await connection.post('/unseal', document)
  const answer = JSON.parse(body.toString('utf8'))
  return { status, reason: answer.error?.reason ?? answer.outcome, code: answer.error?.code }
}

describe('a sealed router', () => {
  let router: ServeRun
  let other: ServeRun
  let connection: GuestConnection
  let stateDir: string

  beforeAll(async () => {
    stateDir = world.at('state')
    ;[router, other] = await Promise.all([startSealed(stateDir), startSealed(world.at('other'))])
    connection = await connectGuest(addressOf(router))
  }, 120_000)
  afterAll(() => connection.close())

  test('proves itself, says that it is sealed, and does nothing else', async () => {
    for (const path of ['/attestation', '/.well-known/trust.json', '/.well-known/jwks.json']) {
      expect((await connection.get(path)).status).toBe(200)
    }
    const health = await connection.get('/healthz')
    expect(health.status).toBe(503)
    expect(JSON.parse(health.body.toString())).toEqual({ status: 'sealed', unseal_refused: {} })
    for (const path of ['/v1/models', '/admin/customers', '/nothing']) {
      const answer = await connection.get(path)
      expect(answer.status).toBe(503)
      expect(JSON.parse(answer.body.toString())).toMatchObject({ error: { code: 'sealed' } })
    }
  })

  test('refuses to start with a secret that its starter could see', async () => {
    const run = runServe({
      config: world.config,
      args: ['--sealed'],
      env: { NOVA_API_KEY: 'seen' },
    })
    expect(await run.ended).toBe(1)
    expect(run.output()).toContain(
      '--sealed: NOVA_API_KEY is given at the start; a sealed router takes secrets by document only',
    )
    expect(run.output()).not.toContain('seen;')
    await run.remove()
  })

  test('gets nothing from a command that its evidence does not satisfy', async () => {
    const address = addressOf(router)
    writeFileSync(world.at('other.json'), '{}')
    const program = join(PROJECT_DIR, 'src/cli/main.ts')
    const stranger = await makeSigningKey({ extractable: false })
    writeFileSync(world.at('other-root.json'), JSON.stringify(stranger.publicJwk))
    expect(await unseal(address, { '--root-key': world.at('other-root.json') })).toMatchObject({
      status: 1,
      line: 'NOT UNSEALED: trust_bundle_header does not hold; nothing was sent',
    })
    expect(await unseal(address, { '--configuration': world.at('other.json') })).toEqual({
      status: 1,
      line: 'NOT UNSEALED: configuration does not hold; nothing was sent',
    })
    const judgedBy = (bundle: string) => unseal(addressOf(other), { '--bundle': world.at(bundle) })
    expect(await judgedBy('other-measurement.json')).toEqual({
      status: 1,
      line: 'NOT UNSEALED: measurement_allowed does not hold; nothing was sent',
    })
    expect(await judgedBy('higher-floor.json')).toEqual({
      status: 1,
      line: 'NOT UNSEALED: tcb_floor does not hold; nothing was sent',
    })
    chmodSync(world.at('secrets.json'), 0o644)
    expect(await unseal(address)).toEqual({
      status: 2,
      line: `error: ${world.at('secrets.json')} can be read by others: chmod 600 it`,
    })
    chmodSync(world.at('secrets.json'), 0o600)
    const real = await promisify(execFile)(process.execPath, [
      program,
      'unseal',
      address,
      '--environment',
      'local',
      ...Object.entries(standardFlags()).flat(),
    ]).catch((error: { code: number; stdout: string }) => error)
    expect(real.stdout).toContain('NOT UNSEALED: simulated_platform does not hold')
  }, 120_000)

  test('gets nothing through a man in the middle who relays its evidence', async () => {
    const middle = await startManInTheMiddle({ baseURL: addressOf(router) })
    expect(await unseal(middle.baseURL)).toEqual({
      status: 1,
      line: 'NOT UNSEALED: tls_key does not hold; nothing was sent',
    })
    expect(middle.read.length).toBeGreaterThan(0)
    expect(middle.read.filter((request) => !request.startsWith('GET '))).toEqual([])
    middle.close()
  })

  test('gets nothing from a broker for a measurement, firmware or configuration that is not allowed', async () => {
    // Each asks for an attestation of its own, and there is a limit to these.
    const address = addressOf(other)
    const refused = [
      [{ bundle: 'other-measurement.json' }, 'measurement_allowed: '],
      [{ bundle: 'higher-floor.json' }, 'tcb_floor: '],
      [{ configuration: 'other.json' }, 'configuration: '],
    ] as const
    for (const [given, fault] of refused) {
      const broker = startBroker(world, address, { state: 'none', ...given })
      await until(() => broker.said('unproven'))
      broker.stop()
      expect(broker.lines()[0]).toContain(`"reason":"${fault}`)
    }
    const there = await connectGuest(address)
    const health = await there.get('/healthz')
    expect(JSON.parse(health.body.toString())).toEqual({ status: 'sealed', unseal_refused: {} })
    there.close()
  }, 120_000)

  test('refuses by name every document that is not for it, in time, once, from its operator', async () => {
    const good = await attestedTerms(connection, NONCE)
    const now = Date.now()
    const sign = (terms: UnsealTerms, at = now) => signUnsealDocument(terms, world.operator, at)
    const stranger = await makeSigningKey({ extractable: false })
    const there = await connectGuest(addressOf(other))
    const cases = [
      ['not.a.document', 'malformed'],
      [await signUnsealDocument(good, stranger, now), 'bad_signature'],
      [await sign(good, now + 3_600_000), 'not_yet_valid'],
      [await sign(good, now - 3_600_000), 'expired'],
      [await sign(await attestedTerms(there, 'cd'.repeat(32))), 'wrong_router'],
      [await sign({ ...good, configuration_sha256: '0'.repeat(64) }), 'wrong_configuration'],
      [await sign({ ...good, nonce: 'ef'.repeat(32) }), 'unknown_nonce'],
    ] as const
    for (const [document, reason] of cases) {
      expect(await post(connection, document)).toEqual({
        status: 403,
        reason,
        code: 'unseal_refused',
      })
    }
    const weak = { ...good, secrets: { ...SECRETS, ADMIN_TOKEN: 'weak', OTHER: 'x' } }
    expect(await post(connection, await sign(weak))).toMatchObject({ reason: 'secrets_refused' })
    // Its nonce is used up.
    expect(await post(connection, await sign(good))).toMatchObject({ reason: 'unknown_nonce' })
    const { body } = await connection.get('/healthz')
    expect(JSON.parse(body.toString())).toEqual({
      status: 'sealed',
      unseal_refused: {
        malformed: 1,
        bad_signature: 1,
        not_yet_valid: 1,
        expired: 1,
        wrong_router: 1,
        wrong_configuration: 1,
        unknown_nonce: 2,
        secrets_refused: 1,
      },
    })
    there.close()
  })

  test('serves once it has its secrets, and the document is good for nothing more', async () => {
    // A change of the file after the start has no effect: the secrets are for the configuration in force.
    writeFileSync(router.configFile, '{')
    const document = await signUnsealDocument(
      await attestedTerms(connection, '12'.repeat(32)),
      world.operator,
      Date.now(),
    )
    expect(await post(connection, document)).toEqual({ status: 200, reason: 'accepted' })
    await until(() => router.output().includes('is serving'))
    const again = await connectGuest(addressOf(router))
    expect(await post(again, document)).toMatchObject({ status: 403, reason: 'unknown_nonce' })
    again.close()
    const there = await connectGuest(addressOf(other))
    expect(await post(there, document)).toMatchObject({ status: 403, reason: 'wrong_router' })
    there.close()
    const key = await customerKey(router)
    const { service } = await chat(router, key)
    expect(await verifyReceipt(router, key, service.receipt_id)).toBe(0)
    expect(provider.keys.at(-1)).toBe('Bearer first-key')
  }, 120_000)

  test('takes new secrets by a further document, without a restart', async () => {
    const key = await customerKey(router)
    const { parts } = readServingFile(stateDir)
    const next = { ...SECRETS, NOVA_API_KEY: 'second-key' }
    writeFileSync(world.at('next.json'), JSON.stringify(next), { mode: 0o600 })
    expect(await unseal(addressOf(router), { '--secrets': world.at('next.json') })).toEqual({
      status: 0,
      line: 'UNSEALED ON A SIMULATED PLATFORM, which proves nothing about any machine: the router proved itself and has its secrets',
    })
    await until(async () => {
      await chat(router, key)
      return provider.keys.at(-1) === 'Bearer second-key'
    })
    expect(readServingFile(stateDir).parts).toEqual(parts)

    const moved = { ...next, DATABASE_URL: 'postgres://127.0.0.1/other' }
    writeFileSync(world.at('moved.json'), JSON.stringify(moved), { mode: 0o600 })
    expect(await unseal(addressOf(router), { '--secrets': world.at('moved.json') })).toEqual({
      status: 1,
      line:
        'REFUSED BY THE ROUTER: secrets_refused: the secrets of the document cannot be put into force: ' +
        'the ledger cannot move to another storage while the router runs',
    })

    const wrong = { ADMIN_TOKEN: 'weak', NOVA_API_KEY: 'first\nsecond', OTHER: 'x' }
    writeFileSync(world.at('wrong.json'), JSON.stringify(wrong), { mode: 0o600 })
    expect(await unseal(addressOf(router), { '--secrets': world.at('wrong.json') })).toEqual({
      status: 1,
      line:
        'REFUSED BY THE ROUTER: secrets_refused: the secrets of the document cannot be put into force: ' +
        'production mode refuses to start: providers.nova.api_key_env: the variable NOVA_API_KEY has a line break or another ' +
        'character that no header carries; OTHER: the configuration asks for no such secret; ADMIN_TOKEN: is shorter than 24 characters',
    })

    const unproven = { ...next, DATABASE_URL: 'postgres://user:pass@database.example/x' }
    writeFileSync(world.at('unproven.json'), JSON.stringify(unproven), { mode: 0o600 })
    const refused = await unseal(addressOf(router), { '--secrets': world.at('unproven.json') })
    expect(refused.status).toBe(1)
    expect(refused.line).toContain('service.database_ca: is missing')
  }, 120_000)

  test('is unsealed by hand too with the position at which its ledger was', async () => {
    expect(await unseal(addressOf(other), { '--ledger-position': '1.5' })).toEqual({
      status: 2,
      line: 'error: --ledger-position is no whole number',
    })
    expect(await unseal(addressOf(other), { '--ledger-position': '7' })).toMatchObject({
      status: 0,
    })
    await until(() => other.output().includes('ROLLBACK'))
    expect(other.output()).toContain(
      '!!!!!!!! ROLLBACK: the ledger is at position 0, but was at 7 before',
    )
  }, 120_000)

  test('keeps no secret on the disk or in the environment of its parts', () => {
    for (const pid of Object.values(readServingFile(stateDir).parts)) {
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8')
      expect(environment).not.toContain('second-key')
      expect(environment).not.toContain(ADMIN_TOKEN)
    }
    for (const text of [router.output(), readFileSync(join(stateDir, 'log/serve.log'), 'utf8')]) {
      expect(text).not.toContain('second-key')
      expect(text).not.toContain(ADMIN_TOKEN)
    }
  })

  test('that comes back is unsealed by the broker with the same ledger, and a ledger put back is noticed', async () => {
    const key = await customerKey(router)
    const { service } = await chat(router, key)
    const broker = startBroker(world, addressOf(router))
    await until(() => broker.said('serving'))
    broker.stop()
    const before = await ledger(router)
    router.signal('SIGKILL')
    await router.ended
    const positions = JSON.parse(readFileSync(world.at('positions.json'), 'utf8'))
    expect(positions['guest-1']).toBeGreaterThan(0)
    router = await startSealed(stateDir)
    // It is put on the list while the broker runs, as a new guest of a fleet is.
    const second = startBroker(world, 'https://127.0.0.1:1')
    await until(() => second.said('unreachable'))
    writeFileSync(world.at('hosts.json'), '{')
    writeHosts(world, addressOf(router))
    await until(() => second.said('unsealed') && router.output().includes('is serving'))
    await until(() => second.said('serving'))
    second.stop()
    expect(await ledger(router)).toEqual(before)
    expect(await verifyReceipt(router, key, service.receipt_id)).toBe(0)
    expect((await chat(router, key)).service.receipt_id).toBeDefined()
    expect(router.output()).not.toContain('ROLLBACK')

    writeFileSync(world.at('positions.json'), JSON.stringify({ 'guest-1': 1_000_000 }))
    router.signal('SIGTERM')
    await router.ended
    router = await startSealed(stateDir)
    const third = startBroker(world, addressOf(router))
    await until(() => third.said('ledger_behind'))
    third.stop()
    expect(router.output()).toContain('!!!!!!!! ROLLBACK: the ledger is at position')
    expect(third.lines().every((line) => !line.includes('second-key'))).toBe(true)
  }, 120_000)
})

const customerKey = (run: ServeRun) => makeKey(readServingFile(run.stateDir).http_url)

async function chat(run: ServeRun, key: string) {
  const answer = await fetch(`${readServingFile(run.stateDir).http_url}/v1/chat/completions`, {
    ...chatBody('quick'),
    headers: { authorization: `Bearer ${key}` },
  })
  expect(answer.status).toBe(200)
  return completionIn(await answer.text())
}

/** The exit status of `verify receipt`. */
async function verifyReceipt(run: ServeRun, key: string, id: string | undefined) {
  const base = readServingFile(run.stateDir).http_url
  const answer = await fetch(`${base}/v1/receipts/${id}`, {
    headers: { authorization: `Bearer ${key}` },
  })
  writeFileSync(world.at('receipt.json'), await answer.text())
  const flags = ['--base-url', addressOf(run), '--root-key', world.at('root.jwk.json')]
  const policy = ['--allow-simulated', '--environment', 'local', '--state', 'none']
  const program = join(PROJECT_DIR, 'src/cli/main.ts')
  const args = [program, 'verify', 'receipt', world.at('receipt.json'), ...flags, ...policy]
  return promisify(execFile)(process.execPath, args, {
    env: { ...process.env, CMR_API_KEY: key },
  }).then(
    () => 0,
    ({ code }) => code,
  )
}

/** Customers, and how far the ledger is. */
async function ledger(run: ServeRun) {
  const admin = new AdminApi(readServingFile(run.stateDir).http_url, ADMIN_TOKEN)
  return [await admin.call('GET', '/admin/customers'), await admin.call('GET', '/admin/ledger')]
}
