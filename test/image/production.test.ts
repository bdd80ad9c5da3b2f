import { copyFileSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { connectGuest, type GuestConnection } from '../../src/cli/unseal/guest-connection.ts'
import { signUnsealDocument, type UnsealTerms } from '../../src/cli/unseal/sign-document.ts'
import { makeSigningKey } from '../../src/enclave/release/signing-key.ts'
import { callGuest, openStream } from './call-guest.ts'
import { cutShort, diskOf, failingDisk, overwriteBlocks } from './disk-harm.ts'
import { BOOT_MS, bootGuest, untilGuest, untilSaid, whyNoGuest, type Guest } from './guest.ts'
import { ADMIN_TOKEN, makeGuestWorld, type GuestWorld } from './guest-world.ts'
import {
  addressOf,
  inferenceHop,
  startBroker,
  unseal,
  verifyReceipt,
  type Broker,
} from './operator.ts'

/** The life of a guest in production mode, with a power cut in it: ten minutes and more under emulation. */

const reason = whyNoGuest()
if (reason !== undefined) console.log(`no guest is booted in production mode: ${reason}`)

describe.skipIf(reason !== undefined)('a guest in production mode', { timeout: BOOT_MS }, () => {
  let world: GuestWorld
  let guest: Guest
  let connection: GuestConnection
  let customerKey = ''
  let receiptId = ''
  /** A document that the first guest took. */
  let used = ''
  let ledgerBefore: unknown
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

  /** The provider is verified after the unsealing: until then there is no route to it. */
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

  async function ledger() {
    const customers = await callGuest(guest, 'GET', '/admin/customers', ADMIN_TOKEN, undefined)
    const position = await callGuest(guest, 'GET', '/admin/ledger', ADMIN_TOKEN, undefined)
    expect([customers.status, position.status]).toEqual([200, 200])
    return { customers: customers.json, position: position.json }
  }

  async function brokerSays(decision: string): Promise<Broker> {
    const broker = startBroker(world, guest)
    brokers.push(broker)
    await untilGuest(guest, () => broker.said(decision))
    broker.stop()
    return broker
  }

  it('starts sealed: it proves itself, and does nothing else', async () => {
    connection = await connectGuest(addressOf(guest))
    const health = await connection.get('/healthz')
    expect([health.status, JSON.parse(health.body.toString())]).toEqual([
      503,
      { status: 'sealed', unseal_refused: {} },
    ])
    for (const path of ['/attestation', '/.well-known/trust.json', '/.well-known/jwks.json']) {
      expect((await connection.get(path)).status).toBe(200)
    }
    const refused = await callGuest(guest, 'POST', '/v1/chat/completions', 'none', {})
    expect([refused.status, refused.json]).toMatchObject([503, { error: { code: 'sealed' } }])
    expect(guest.console()).toContain('"event":"simulated_platform"')
    expect(guest.console()).toMatch(/"event":"acpi_tables","sha256":"[0-9a-f]{64}","tables":1,/)
  })

  it('gets nothing from an operator who allows another measurement', async () => {
    const bundle = { '--bundle': world.at('other-measurement.json') }
    expect(await unseal(world, guest, bundle)).toEqual({
      status: 1,
      line: 'NOT UNSEALED: measurement_allowed does not hold; nothing was sent',
    })
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
    const byStranger = { '--operator-key': world.at('stranger.private.jwk.json') }
    expect(await unseal(world, guest, byStranger)).toMatchObject({
      status: 1,
      line: expect.stringContaining('REFUSED BY THE ROUTER: bad_signature'),
    })
    // A document is used up by its first use, even where its secrets are refused.
    const weak = await sign({ ...good, secrets: { ...world.secrets, ADMIN_TOKEN: 'weak' } })
    expect(await refusal(weak)).toEqual({ status: 403, reason: 'secrets_refused' })
    expect(await refusal(weak)).toEqual({ status: 403, reason: 'unknown_nonce' })
    const health = await connection.get('/healthz')
    expect(JSON.parse(health.body.toString())).toEqual({
      status: 'sealed',
      unseal_refused: {
        bad_signature: 2,
        expired: 1,
        wrong_router: 1,
        unknown_nonce: 2,
        secrets_refused: 1,
      },
    })
    connection.close()
  })

  it('serves after the command has unsealed it, over an attested provider, with receipts that verify', async () => {
    expect(await unseal(world, guest)).toEqual({
      status: 0,
      line: 'UNSEALED ON A SIMULATED PLATFORM, which proves nothing about any machine: the router proved itself and has its secrets',
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
    const verified = await verifyReceipt(world, guest, { id: receiptId, key: customerKey })
    expect(verified.output).not.toContain('FAIL')
    expect(verified.output).toContain('ON A SIMULATED PLATFORM')
    expect(verified.status).toBe(0)
    expect(inferenceHop(world)).toMatchObject({
      verified: true,
      verification_mode: 'snp-envelope',
      attestation_strength: 'simulated',
    })
    await brokerSays('serving')
    ledgerBefore = await ledger()
  })

  it('takes further secrets by a further document, once', async () => {
    connection = await connectGuest(addressOf(guest))
    const terms = await attested('cd'.repeat(32))
    used = await signUnsealDocument(terms, world.operator, Date.now())
    expect((await connection.post('/unseal', used)).status).toBe(200)
    expect(await refusal(used)).toEqual({ status: 403, reason: 'unknown_nonce' })
    connection.close()
  })

  it('is back after a power cut, with the same ledger, once the broker has unsealed it', async () => {
    await guest.stop()
    guest = await bootGuest(world.plan())
    await untilSaid(guest, 'sealed')
    connection = await connectGuest(addressOf(guest))
    expect(await refusal(used)).toEqual({ status: 403, reason: 'wrong_router' })
    connection.close()
    const otherKey = { '--secrets': world.at('other-disk-key.json') }
    expect((await unseal(world, guest, otherKey)).line).toContain('data_disk_other_key')
    const broker = startBroker(world, guest)
    brokers.push(broker)
    await untilSaid(guest, 'serving')
    await untilGuest(guest, () => broker.said('serving'))
    broker.stop()
    expect([broker.said('unsealed'), broker.said('ledger_behind')]).toEqual([true, false])
    expect(await ledger()).toEqual(ledgerBefore)
    const verified = await verifyReceipt(world, guest, { id: receiptId, key: customerKey })
    expect(verified.status).toBe(0)
    expect((await chat()).service.receipt_id).not.toBe(receiptId)
  })

  it('drains when its power button is pressed: a stream is finished, then it switches itself off', async () => {
    const stream = await openStream(guest, customerKey, 'count to 1000')
    await guest.pressPowerButton()
    await untilSaid(guest, 'draining')
    expect(await stream.rest()).toMatch(/data: \[DONE\]\s*$/)
    await guest.ended
    expect(guest.console()).toContain('{"event":"service_ended","status":0}')
  })

  it('said nothing on its console but JSON lines without a secret', () => {
    const lines = guest.console().split('\r\n').filter(Boolean)
    for (const line of lines) expect(JSON.parse(line)).toHaveProperty('event')
    for (const secret of [...Object.values(world.secrets), customerKey]) {
      expect(guest.console()).not.toContain(secret)
    }
  })

  it.each([
    ['that lost its end', 'data_disk_damaged', cutShort, diskOf],
    ['whose blocks were overwritten', 'data_disk_damaged', overwriteBlocks, diskOf],
    ['that cannot be read', 'data_disk_unreadable', () => {}, failingDisk],
  ] as const)('refuses a disk %s by name, and leaves it as it is', async (...harmed) => {
    const [, name, harm, attach] = harmed
    const disk = world.at('harmed.img')
    copyFileSync(world.at('data.img'), disk)
    harm(disk)
    const before = readFileSync(disk)
    guest = await bootGuest({ ...world.plan(), dataDisk: undefined, host: attach(disk) })
    await untilSaid(guest, 'sealed')
    expect((await unseal(world, guest)).line).toContain(name)
    expect(guest.console()).toContain(name)
    const health = await callGuest(guest, 'GET', '/healthz', 'none', undefined)
    expect(health.json).toEqual({ status: 'sealed', unseal_refused: { secrets_refused: 1 } })
    await guest.stop()
    expect(readFileSync(disk).equals(before)).toBe(true)
  })
})
