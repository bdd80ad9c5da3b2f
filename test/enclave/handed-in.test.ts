import { X509Certificate } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { DaemonReady } from '../../src/protocol/boot.ts'
import { linkConfigSchema } from '../../src/protocol/link.ts'
import { readEnvelope } from '../../src/verify/envelope-hardware.ts'
import { makeCsr } from '../../src/host/serve/csr.ts'
import { makeTestAuthority } from '../support/test-authority.ts'
import { startDaemonProcess, type DaemonProcess } from './daemon-process.ts'
import { TRUST_BUNDLE_URL } from '../support/trust-bundle-url.ts'

const CONFIG = {
  service: {
    name: 'router-under-test',
    trust_bundle_url: TRUST_BUNDLE_URL,
    allow_simulated: true,
    allow_unattested: ['nova'],
  },
  providers: {
    nova: {
      base_url: 'http://127.0.0.1:9/v1',
      api_key_env: 'NOVA_API_KEY',
      attestation: { adapter: 'none' },
    },
  },
  routes: [{ model_key: 'm', provider: 'nova', upstream_model: 'x', type: 'chat' }],
}

let daemon: DaemonProcess
let ready: DaemonReady

beforeAll(async () => {
  daemon = await startDaemonProcess(CONFIG, { secrets: { NOVA_API_KEY: 'first' } })
  ;({ ready } = await daemon.next('ready'))
}, 60_000)
afterAll(() => daemon.stop())

async function attestedKey(): Promise<string> {
  return readEnvelope((await daemon.call(ready, '/v1/attestation')).text).tls_spki_sha256
}

async function providerKeys(): Promise<Record<string, string>> {
  const { text } = await daemon.call(ready, '/v1/config')
  return linkConfigSchema.parse(JSON.parse(text)).secrets.provider_api_keys
}

describe('what a supervisor hands in', () => {
  it('are secrets, which a reload replaces', async () => {
    expect(await providerKeys()).toEqual({ nova: 'first' })
    daemon.send({ type: 'reload', secrets: { NOVA_API_KEY: 'second' } })
    await daemon.next('reloaded')
    expect(await providerKeys()).toEqual({ nova: 'second' })
  })

  it('is a chain for a prepared key, which no envelope names before', async () => {
    daemon.send({ type: 'prepare_tls', domains: ['router.test'] })
    const { tls } = await daemon.next('tls_prepared')
    expect(new X509Certificate(tls.certPem).checkHost('router.test')).toBe('router.test')
    expect(await attestedKey()).toBe(ready.tls.spkiSha256)

    const authority = await makeTestAuthority()
    const certPem = await authority.sign(await makeCsr(tls.keyPem, ['router.test']))
    daemon.send({ type: 'renew_tls', tls: { certPem, keyPem: tls.keyPem } })
    const renewed = await daemon.next('tls_renewed')
    expect(renewed.tls).toEqual({ certPem, keyPem: tls.keyPem, spkiSha256: tls.spkiSha256 })
    expect(await attestedKey()).toBe(tls.spkiSha256)
  })

  it('is refused when key and certificate do not belong together', async () => {
    const before = await attestedKey()
    daemon.send({ type: 'prepare_tls', domains: ['router.test'] })
    const { tls } = await daemon.next('tls_prepared')
    const mixed = { certPem: ready.tls.certPem, keyPem: tls.keyPem }
    daemon.send({ type: 'renew_tls', tls: mixed })
    const { reason } = await daemon.next('tls_refused')
    expect(reason).toBe('the TLS certificate does not belong to the TLS key')
    expect(await attestedKey()).toBe(before)
  })
})
