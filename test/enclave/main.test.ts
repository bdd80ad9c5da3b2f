import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { compactVerify, decodeJwt, importJWK } from 'jose'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { CHIP_FILE_VARIABLE } from '../../src/enclave/open-machine.ts'
import type { DaemonReady, LocalRelease } from '../../src/protocol/boot.ts'
import { fromBase64 } from '../../src/protocol/bytes.ts'
import { sha256Hex } from '../../src/protocol/digest.ts'
import { hpkeAnswerSchema, linkConfigSchema, linkStateSchema } from '../../src/protocol/link.ts'
import { receiptClaimsSchema } from '../../src/protocol/receipt.ts'
import { publishedTrustBundleSchema } from '../../src/protocol/trust-bundle.ts'
import { readEnvelope, verifyEnvelopeHardware } from '../../src/verify/envelope-hardware.ts'
import { CLAIMS } from './claims-to-sign.ts'
import { startDaemonProcess, type DaemonProcess } from './daemon-process.ts'
import { TRUST_BUNDLE_URL } from '../support/trust-bundle-url.ts'
import { wholeReceipts } from '../support/signed-receipts.ts'

type Json = Record<string, unknown>

const PRODUCTION = { trust_bundle_url: TRUST_BUNDLE_URL, allow_simulated: true }

function config(service: Json = {}): Json {
  return {
    service: { name: 'router-under-test', mode: 'local', ...service },
    providers: {
      nova: {
        base_url: 'http://127.0.0.1:9/v1',
        api_key_env: 'NOVA_API_KEY',
        attestation: { adapter: 'none' },
      },
      vega: {
        base_url: 'http://127.0.0.1:9/v1',
        attestation: { adapter: 'tinfoil', allowed_measurements: ['ab'.repeat(48)] },
      },
    },
    routes: [{ model_key: 'm', provider: 'nova', upstream_model: 'x', type: 'chat' }],
  }
}

/** Handed to later daemons, which are ready sooner without making keys of RSA-4096. */
const kept: { release: LocalRelease | null } = { release: null }

describe('a booted daemon', () => {
  let daemon: DaemonProcess
  let ready: DaemonReady

  beforeAll(async () => {
    // A chip of its own, as where no test hands it one.
    const env = { NOVA_API_KEY: 'provider-key', [CHIP_FILE_VARIABLE]: undefined }
    daemon = await startDaemonProcess(config(), {}, env)
    ;({ ready } = await daemon.next('ready'))
    kept.release = ready.release
  }, 60_000)

  afterAll(() => daemon.stop())

  const get = (path: string) => daemon.call(ready, path)

  async function state() {
    return linkStateSchema.parse((await get('/v1/state')).json())
  }

  async function hpkeKeyConfig() {
    const { key_config_b64: text } = hpkeAnswerSchema.parse((await get('/v1/hpke')).json())
    return fromBase64(text)
  }

  const digestOfConfig = async () => sha256Hex(await readFile(daemon.configPath, 'utf8'))

  const sign = (configuration: string) => {
    const ask = {
      claims: CLAIMS,
      provider: 'nova',
      configuration_sha256: configuration,
      evidence_sha256: null,
    }
    return daemon.call(ready, '/v1/sign', {
      method: 'POST',
      body: JSON.stringify({ receipts: [ask] }),
    })
  }

  async function signedUnder(configuration: string) {
    const receipts = wholeReceipts((await sign(configuration)).json())
    return receiptClaimsSchema.parse(decodeJwt(receipts[0]?.jws ?? ''))
  }

  it('reports its state, and the digest of the envelope it serves', async () => {
    const { text } = await get('/v1/attestation')
    const envelope = readEnvelope(text)
    expect(await state()).toMatchObject({
      generation: 1,
      kid: ready.kid,
      jwk: { kid: ready.kid, alg: 'ES256', use: 'sig' },
      envelope_sha256: await sha256Hex(text),
    })
    expect(envelope.tls_spki_sha256).toBe(ready.tls.spkiSha256)
    expect(envelope.report_data_binding?.receipt_key_thumbprint).toBe(ready.kid)
    expect((await get(`/v1/evidence/${await sha256Hex(text)}`)).text).toBe(text)
  })

  it('labels its platform as simulated and binds a nonce', async () => {
    const nonce = 'c4'.repeat(32)
    const envelope = readEnvelope((await get(`/v1/attestation?nonce=${nonce}`)).text)
    expect(envelope.report_data_binding?.nonce).toBe(nonce)
    const refused = await verifyEnvelopeHardware(envelope, { now: Date.now() })
    expect(refused.checks.filter(({ ok }) => !ok).map(({ name }) => name)).toEqual([
      'simulated_platform',
    ])
    const options = { now: Date.now(), simulated: 'any', requireCrl: true } as const
    const allowed = await verifyEnvelopeHardware(envelope, options)
    expect(allowed.ok).toBe(true)
    expect(allowed.checks.map(({ name }) => name)).toContain('revocation')
  })

  it.each([
    ['/v1/attestation?nonce=abc', 400, 'invalid_request', 'a nonce is 64 lowercase hex digits'],
    ['/v1/evidence/00', 404, 'not_found', 'no such evidence'],
    ['/v1/evidence', 404, 'not_found', 'no such evidence'],
    ['/v1/egress', 400, 'invalid_request', 'the path names no provider'],
    ['/v1/egress/nobody/x', 404, 'not_found', 'no provider of that name'],
    ['/v1/egress/nova/chat', 400, 'invalid_request', 'this provider has no attestation'],
    ['/v1/egress/vega/chat', 503, 'provider_unproven', 'the provider has no verified evidence'],
  ])('answers %s with %d %s', async (path, status, code, message) => {
    const reply = await get(path)
    expect([reply.status, reply.json()]).toEqual([status, { error: { code, message } }])
  })

  it('gives the worker its configuration and the secrets it names', async () => {
    const answer = linkConfigSchema.parse((await get('/v1/config')).json())
    expect(answer.config.service.name).toBe('router-under-test')
    expect(answer.configuration_sha256).toBe(await digestOfConfig())
    expect(answer.secrets).toEqual({
      admin_token: 'admin-token',
      provider_api_keys: { nova: 'provider-key' },
      webhook_secrets: {},
    })
  })

  it('signs receipts that verify under its JWK and say that the router was verified', async () => {
    const reply = await sign(await digestOfConfig())
    const receipts = wholeReceipts(reply.json())
    const { jwk, envelope_sha256: digest } = await state()
    const { payload } = await compactVerify(receipts[0]?.jws ?? '', await importJWK(jwk))
    expect(JSON.parse(new TextDecoder().decode(payload))).toMatchObject({
      ...CLAIMS,
      configuration_sha256: await digestOfConfig(),
      router_attestation: { verified: true, evidence_raw: { sha256: digest } },
      receipt_signature: { kid: ready.kid, verified: true },
    })
    expect(receipts[0]?.evidence_refs).toEqual([digest])
  })

  it('decapsulates for a request once, and refuses what is no encapsulated key', async () => {
    const enc = '09'.padEnd(64, '0')
    const replies = [
      [{ enc, owner: 'a' }, 200, { shared_secrets: [expect.stringMatching(/^[0-9a-f]{64}$/)] }],
      [{ enc, owner: 'a' }, 409, { error: { code: 'replayed' } }],
      [{ enc: '0'.repeat(64), owner: 'a' }, 400, { error: { code: 'invalid_request' } }],
      [{ enc: 'ab', owner: 'a' }, 400, { error: { code: 'invalid_request' } }],
    ] as const
    for (const [ask, status, answer] of replies) {
      const body = JSON.stringify(ask)
      const reply = await daemon.call(ready, '/v1/hpke', { method: 'POST', body })
      expect([reply.status, reply.json()]).toMatchObject([status, answer])
    }
  })

  it('publishes a trust bundle of the root whose public key it stores', async () => {
    const published = publishedTrustBundleSchema.parse((await get('/v1/trust')).json())
    const root: unknown = JSON.parse(await readFile(ready.rootKeyPath, 'utf8'))
    expect(root).toEqual(ready.release?.rootPublicJwk)
    expect(published.trust_bundle_jws).toBe(ready.release?.bundleJws)
  })

  it('writes nothing to the disk but the public root key', async () => {
    expect(await readdir(daemon.boot.stateDir)).toEqual(['release-root.jwk.json'])
    expect(await readFile(ready.rootKeyPath, 'utf8')).not.toMatch(/"d"|PRIVATE/)
  })

  it('takes a valid new configuration as the next generation', async () => {
    await daemon.writeConfig(config({ name: 'renamed' }))
    expect((await daemon.next('reloaded')).generation).toBe(2)
    expect(await state()).toMatchObject({ generation: 2, kid: ready.kid })
    const answer = linkConfigSchema.parse((await get('/v1/config')).json())
    expect(answer.config.service.name).toBe('renamed')
    expect(answer.configuration_sha256).toBe(await digestOfConfig())
  })

  it('has evidence for the new configuration, and signs what began under the former one under it', async () => {
    const former = await sha256Hex(JSON.stringify(config()))
    const current = await digestOfConfig()
    const { text: served } = await get('/v1/attestation')
    expect(readEnvelope(served).report_data_binding).toMatchObject({
      label: 'cmr/report-data/v2',
      hpke_key_config_sha256: await sha256Hex(await hpkeKeyConfig()),
      configuration_sha256: current,
    })
    const signed = await Promise.all([former, current].map(signedUnder))
    expect(signed.map((claims) => claims.configuration_sha256)).toEqual([former, current])
    const bound = await Promise.all(
      signed.map(async ({ router_attestation: { evidence_raw: raw } }) => {
        const { sha256 } = z.object({ sha256: z.string() }).parse(raw)
        const { text } = await get(`/v1/evidence/${sha256}`)
        return readEnvelope(text).report_data_binding
      }),
    )
    expect(bound).toMatchObject([
      { configuration_sha256: former },
      { configuration_sha256: current },
    ])
  })

  it('signs nothing under a configuration that was never in force', async () => {
    const reply = await sign('ee'.repeat(32))
    expect([reply.status, reply.json()]).toEqual([
      400,
      {
        error: {
          code: 'unknown_evidence',
          message: 'no evidence of this instance binds this configuration',
        },
      },
    ])
  })

  it('keeps the last good configuration when a new one is wrong, and says why', async () => {
    await daemon.writeConfig(config({ name: 'a b' }))
    const { reason } = await daemon.next('reload_refused')
    expect(reason).toContain('service.name: only letters, digits, ".", "_" and "-"')
    daemon.send({ type: 'reload' })
    expect((await daemon.next('reload_refused')).reason).toBe(reason)
    daemon.child.kill('SIGHUP')
    expect((await daemon.next('reload_refused')).reason).toBe(reason)
    expect((await state()).generation).toBe(2)
  })

  it('makes a new TLS key on request, with an envelope that names it', async () => {
    daemon.send({ type: 'renew_tls' })
    const { tls } = await daemon.next('tls_renewed')
    expect(tls.spkiSha256).not.toBe(ready.tls.spkiSha256)
    expect(readEnvelope((await get('/v1/attestation')).text).tls_spki_sha256).toBe(tls.spkiSha256)
  })

  it('is the same stack with a new receipt key after a restart with what it handed back', async () => {
    const { certPem, keyPem } = ready.tls
    const change = { tls: { certPem, keyPem }, release: ready.release }
    const again = await startDaemonProcess(config(), change)
    const { ready: second } = await again.next('ready')
    expect(second.tls).toEqual(ready.tls)
    expect(second.release).toEqual(ready.release)
    expect(second.kid).not.toBe(ready.kid)
    const chains = await Promise.all([
      get('/v1/attestation'),
      again.call(second, '/v1/attestation'),
    ])
    const [before, after] = chains.map(({ text }) => readEnvelope(text).vcek_chain_pem)
    expect(after).toBe(before)
    await again.stop()
  }, 30_000)
})

describe('a daemon in production mode', () => {
  const safe = config({ mode: 'production', ...PRODUCTION, allow_unattested: ['nova'] })
  let daemon: DaemonProcess
  let ready: DaemonReady

  beforeAll(async () => {
    const given = { mode: 'production', configText: JSON.stringify(safe), ...kept } as const
    daemon = await startDaemonProcess(safe, given, { NOVA_API_KEY: 'k' })
    ;({ ready } = await daemon.next('ready'))
  }, 60_000)

  afterAll(() => daemon.stop())

  async function inForce() {
    return linkConfigSchema.parse((await daemon.call(ready, '/v1/config')).json())
  }

  const unsafe = {
    ...config(),
    providers: {
      nova: { base_url: 'http://127.evil.example/v1', attestation: { adapter: 'none' } },
    },
  }

  it('does not become a local one by a write to its file, not even when it is told to read it again', async () => {
    await daemon.writeConfig(unsafe)
    daemon.send({ type: 'reload' })
    await daemon.next('reload_unchanged')
    daemon.child.kill('SIGHUP')
    await daemon.next('reload_unchanged')
    daemon.send({ type: 'reload', configText: '{' })
    await daemon.next('reload_refused')
    const { generation, config: now } = await inForce()
    expect([generation, now.service.mode]).toEqual([1, 'production'])
    expect(now.providers['nova']?.base_url).toBe('http://127.0.0.1:9/v1')
  })

  it.each([
    ['service.mode: is "local", and this router runs in production mode: leave it out', unsafe],
    [
      'providers.nova.base_url: must be https in production mode unless it is a loopback address',
      { ...unsafe, service: safe['service'] },
    ],
    [
      'providers.nova.attestation: is "none" in production mode; name the provider in service.allow_unattested to accept it',
      { ...safe, service: { name: 'r', ...PRODUCTION } },
    ],
  ])('refuses on reload: %s', async (reason, next) => {
    daemon.send({ type: 'reload', configText: JSON.stringify(next) })
    expect((await daemon.next('reload_refused')).reason).toBe(
      `the configuration ${daemon.configPath} cannot be used:\n  ${reason}`,
    )
    expect((await inForce()).generation).toBe(1)
  })

  it('keeps nothing of the secrets and the token that came with a configuration it refused', async () => {
    const before = (await inForce()).secrets
    const secrets = { NOVA_API_KEY: 'of-the-refused' }
    daemon.send({ type: 'reload', id: 1, configText: '{', secrets, adminToken: 'of-the-refused' })
    expect((await daemon.next('reload_refused')).id).toBe(1)
    daemon.send({ type: 'reload', id: 2 })
    expect((await daemon.next('reload_unchanged')).id).toBe(2)
    expect((await inForce()).secrets).toEqual(before)
  })

  it('takes what the supervisor hands over, and its evidence says so', async () => {
    const next = JSON.stringify({ ...safe, plans: { standard: { discount_pct: 5 } } })
    daemon.send({ type: 'reload', configText: next })
    expect((await daemon.next('reloaded')).configText).toBe(next)
    const digest = await sha256Hex(next)
    expect((await inForce()).configuration_sha256).toBe(digest)
    const { text } = await daemon.call(ready, '/v1/attestation')
    expect(readEnvelope(text).report_data_binding).toMatchObject({ configuration_sha256: digest })
  })
})

describe('the end of a daemon', () => {
  let daemon: DaemonProcess
  afterEach(() => daemon.stop())

  it.each([
    ['SIGTERM', () => daemon.child.kill('SIGTERM')],
    ['SIGINT', () => daemon.child.kill('SIGINT')],
    ['a supervisor that is gone', () => daemon.child.disconnect()],
  ])(
    'comes clean with %s',
    async (_what, end) => {
      daemon = await startDaemonProcess(config(), kept)
      await daemon.next('ready')
      end()
      expect(await daemon.exit).toBe(0)
    },
    60_000,
  )

  it('comes with the reason when the configuration is refused', async () => {
    const json = config({ mode: 'production', ...PRODUCTION })
    daemon = await startDaemonProcess(json, { mode: 'production' }, { NOVA_API_KEY: 'k' })
    const { reason } = await daemon.next('refused')
    expect(reason).toBe(
      `the configuration ${daemon.configPath} cannot be used:\n` +
        '  providers.nova.attestation: is "none" in production mode; name the provider in service.allow_unattested to accept it',
    )
    expect(await daemon.exit).toBe(1)
  })

  it('comes with the reason when there is no SNP guest under it', async () => {
    daemon = await startDaemonProcess(config(), { platform: 'configfs-tsm' })
    const { reason } = await daemon.next('refused')
    expect(reason).toMatch(/^no configfs-tsm report provider; .*\(ENOENT at mkdir\)$/)
    expect(await daemon.exit).toBe(1)
  })

  it('comes with the reason when the release files are not there', async () => {
    const release = { root_key: 'root.jwk.json', bundle: 'trust.json', manifest: 'manifest.jws' }
    daemon = await startDaemonProcess(config({ release }))
    const { reason } = await daemon.next('refused')
    expect(reason).toContain(
      `the release file ${join(daemon.directory, 'root.jwk.json')} cannot be used`,
    )
    expect(await daemon.exit).toBe(1)
  })

  it('comes with the reason when the boot message is none', async () => {
    daemon = await startDaemonProcess(config(), { adminToken: '' })
    expect((await daemon.next('refused')).reason).toBe(
      'the supervisor sent a message of an unknown form',
    )
    await writeFile(daemon.configPath, '')
    expect(await daemon.exit).toBe(1)
  })
})
