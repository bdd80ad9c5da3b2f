import { execFile, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { connectGuest, type GuestConnection } from '../../src/cli/unseal/guest-connection.ts'
import { signUnsealDocument, type UnsealTerms } from '../../src/cli/unseal/sign-document.ts'
import { makeSigningKey } from '../../src/enclave/release/signing-key.ts'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { BOOT_MS, bootGuest, untilGuest, untilSaid, whyNoGuest, type Guest } from './guest.ts'
import { ADMIN_TOKEN, makeGuestWorld, type GuestWorld } from './guest-world.ts'
import { callGuest } from './call-guest.ts'

/** One life of a guest in production mode, with a power cut in it: ten minutes and more under emulation. */

const PROGRAM = join(PROJECT_DIR, 'src/cli/main.ts')

const reason = whyNoGuest()
if (reason !== undefined) console.log(`no guest is booted in production mode: ${reason}`)

interface Broker {
  said(decision: string): boolean
  stop(): void
}

describe.skipIf(reason !== undefined)('a guest in production mode', { timeout: BOOT_MS }, () => {
  let world: GuestWorld
  let guest: Guest
  let connection: GuestConnection
  let customerKey = ''
  let receiptId = ''
  const brokers: Broker[] = []

  beforeAll(async () => {
    world = await makeGuestWorld()
    guest = await bootGuest(world.plan())
    await untilSaid(guest, 'sealed')
  }, BOOT_MS)
  afterAll(async () => {
    for (const broker of brokers) broker.stop()
    await guest.stop()
    world.remove()
  })

  const address = () => `https://127.0.0.1:${guest.port}`

  /** Runs the command and answers its status and first line. */
  function unseal(changes: Readonly<Record<string, string>> = {}) {
    const flags = {
      '--root-key': world.at('root.jwk.json'),
      '--operator-key': world.at('operator.private.jwk.json'),
      '--secrets': world.at('secrets.json'),
      '--configuration': world.at('router.json'),
      '--state': 'none',
      ...changes,
    }
    const args = ['unseal', address(), '--allow-simulated', ...Object.entries(flags).flat()]
    return promisify(execFile)(process.execPath, [PROGRAM, ...args]).then(
      ({ stdout }) => ({ status: 0, line: stdout.split('\n')[0] }),
      ({ code, stdout, stderr }) => ({ status: code, line: `${stdout}${stderr}`.split('\n')[0] }),
    )
  }

  async function attested(nonce: string): Promise<UnsealTerms> {
    expect((await connection.get(`/attestation?nonce=${nonce}`)).status).toBe(200)
    return {
      nonce,
      tls_spki_sha256: connection.tlsSpkiSha256,
      configuration_sha256: world.configurationSha256,
      secrets: world.secrets,
    }
  }

  async function refusal(document: string) {
    const { status, body } = await connection.post('/unseal', document)
    return { status, reason: JSON.parse(body.toString('utf8')).error?.reason }
  }

  /** The provider is judged after the unsealing: until then there is no route to it. */
  async function chat() {
    let answer: unknown
    await untilGuest(guest, async () => {
      const completion = await callGuest(guest, 'POST', '/v1/chat/completions', customerKey, {
        model: 'glm-5',
        messages: [{ role: 'user', content: 'Are you in there?' }],
      })
      answer = completion.json
      return completion.status !== 503
    })
    expect(answer).toMatchObject({ object: 'chat.completion' })
    return z.object({ service: z.object({ receipt_id: z.string() }) }).parse(answer)
  }

  async function verifyReceipt(id: string) {
    const receipt = await callGuest(guest, 'GET', `/v1/receipts/${id}`, customerKey, undefined)
    writeFileSync(world.at('receipt.json'), JSON.stringify(receipt.json))
    const flags = ['--base-url', address(), '--root-key', world.at('root.jwk.json')]
    const policy = ['--allow-simulated', '--environment', 'local', '--state', 'none']
    const args = ['verify', 'receipt', world.at('receipt.json'), ...flags, ...policy]
    const env = { ...process.env, CMR_API_KEY: customerKey }
    return promisify(execFile)(process.execPath, [PROGRAM, ...args], { env }).then(
      ({ stdout }) => ({ status: 0, stdout }),
      ({ code, stdout, stderr }) => ({ status: code, stdout: `${stdout}${stderr}` }),
    )
  }

  function startBroker(): Broker {
    const hosts = {
      root_key: 'root.jwk.json',
      operator_key: 'operator.private.jwk.json',
      allow_simulated: true,
      state: 'bundles.json',
      ledger_positions: 'positions.json',
      poll_seconds: 2,
      hosts: [
        {
          name: 'guest-1',
          address: address(),
          configuration: 'router.json',
          secrets: 'secrets.json',
        },
      ],
    }
    writeFileSync(world.at('hosts.json'), JSON.stringify(hosts))
    const args = [PROGRAM, 'unseal', '--watch', world.at('hosts.json')]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
    const broker = {
      said: (decision: string) => output.includes(`"decision":"${decision}"`),
      stop: () => void child.kill('SIGKILL'),
    }
    brokers.push(broker)
    return broker
  }

  it('starts sealed: it proves itself, and does nothing else', async () => {
    connection = await connectGuest(address())
    const health = await connection.get('/healthz')
    expect([health.status, JSON.parse(health.body.toString())]).toEqual([
      503,
      { status: 'sealed', unseal_refused: {} },
    ])
    const refused = await callGuest(guest, 'POST', '/v1/chat/completions', 'none', {})
    expect([refused.status, refused.json]).toMatchObject([503, { error: { code: 'sealed' } }])
    expect(guest.console()).toContain('"event":"simulated_platform"')
  })

  it('refuses every document by name that is not for it, in time, once, from its operator', async () => {
    const good = await attested('ab'.repeat(32))
    const now = Date.now()
    const stranger = await makeSigningKey({ extractable: false })
    const sign = (terms: UnsealTerms, at = now) => signUnsealDocument(terms, world.operator, at)
    const cases = [
      [await signUnsealDocument(good, stranger, now), 'bad_signature'],
      [await sign(good, now - 3_600_000), 'expired'],
      [await sign({ ...good, tls_spki_sha256: '0'.repeat(64) }), 'wrong_router'],
      [await sign({ ...good, nonce: 'ef'.repeat(32) }), 'unknown_nonce'],
    ] as const
    for (const [document, name] of cases) {
      expect(await refusal(document)).toEqual({ status: 403, reason: name })
    }
    expect(await unseal({ '--operator-key': world.at('stranger.private.jwk.json') })).toMatchObject(
      { status: 1, line: expect.stringContaining('REFUSED BY THE ROUTER: bad_signature') },
    )
    connection.close()
  })

  it('serves after the command has unsealed it, with receipts that verify', async () => {
    expect(await unseal()).toEqual({
      status: 0,
      line: 'UNSEALED: the router proved itself and has its secrets',
    })
    await untilSaid(guest, 'serving')
    const customer = await callGuest(guest, 'POST', '/admin/customers', ADMIN_TOKEN, {
      name: 'image test',
      billing: 'prepaid',
      balance_eur: '1.00',
    })
    const { id } = z.object({ id: z.string() }).parse(customer.json)
    const path = `/admin/customers/${id}/keys`
    const made = await callGuest(guest, 'POST', path, ADMIN_TOKEN, { name: 'test' })
    customerKey = z.object({ key: z.string() }).parse(made.json).key
    receiptId = (await chat()).service.receipt_id
    const verified = await verifyReceipt(receiptId)
    expect(verified.stdout).not.toContain('FAIL')
    expect(verified.status).toBe(0)
    const broker = startBroker()
    await untilGuest(guest, () => broker.said('serving'))
    broker.stop()
  })

  it('is back after a power cut, with the same ledger, once the broker has unsealed it', async () => {
    await guest.stop()
    guest = await bootGuest(world.plan())
    await untilSaid(guest, 'sealed')
    const wrong = await unseal({ '--secrets': world.at('other-disk-key.json') })
    expect(wrong.line).toContain('data_disk_other_key')
    const broker = startBroker()
    await untilSaid(guest, 'serving')
    await untilGuest(guest, () => broker.said('serving'))
    expect(broker.said('ledger_behind')).toBe(false)
    broker.stop()
    expect((await verifyReceipt(receiptId)).status).toBe(0)
    expect((await chat()).service.receipt_id).not.toBe(receiptId)
  })

  it('drains when its power button is pressed, and switches itself off', async () => {
    await guest.pressPowerButton()
    await guest.ended
    const text = guest.console()
    expect(text).toContain('"event":"draining"')
    expect(text).toContain('{"event":"service_ended","status":0}')
  })

  it('said nothing on its console but JSON lines without a secret', () => {
    const lines = guest.console().split('\r\n').filter(Boolean)
    for (const line of lines) expect(JSON.parse(line)).toHaveProperty('event')
    for (const secret of [...Object.values(world.secrets), customerKey]) {
      expect(guest.console()).not.toContain(secret)
    }
  })
})
