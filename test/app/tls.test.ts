import { execFileSync } from 'node:child_process'
import { createHash, X509Certificate } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { startAcmeServer, type AcmeServer } from '../support/acme-server.ts'
import { freePort } from '../support/free-port.ts'
import { shownCertificate, startServe, type Serving } from '../support/serve.ts'
import { until } from '../support/stack.ts'
import { makeTestAuthority } from '../support/test-authority.ts'
import { TRUST_BUNDLE_URL } from '../support/trust-bundle-url.ts'

function config(tls: object): object {
  return {
    service: {
      name: 'r',
      trust_bundle_url: TRUST_BUNDLE_URL,
      allow_simulated: true,
      allow_unattested: ['nova'],
      tls,
    },
    providers: { nova: { base_url: 'http://127.0.0.1:9/v1', attestation: { adapter: 'none' } } },
    routes: [{ model_key: 'm', provider: 'nova', upstream_model: 'x', type: 'chat' }],
  }
}

async function shown(router: Serving): Promise<X509Certificate> {
  return new X509Certificate((await shownCertificate(router.at.https_port)).raw)
}

function spkiOf(certificate: X509Certificate): string {
  const der = certificate.publicKey.export({ type: 'spki', format: 'der' })
  return createHash('sha256').update(der).digest('hex')
}

/** Over a connection of its own: kept ones may close under a request when the listeners change. */
async function attestation(router: Serving): Promise<string> {
  return (await router.fetch('/attestation', { headers: { connection: 'close' } })).text()
}

describe('certificates of an ACME authority', () => {
  let acme: AcmeServer
  let router: Serving

  beforeAll(async () => {
    const challengePort = await freePort()
    acme = await startAcmeServer(() => challengePort)
    router = await startServe({
      config: config({ domains: ['router.test'], acme_directory: acme.directory }),
      args: ['--acme-http', `127.0.0.1:${challengePort}`],
    })
  })
  afterAll(async () => {
    await router.remove()
    acme.close()
  })

  test('are shown soon after the start, for the key that the attestation names', async () => {
    const failed = () => router.output().includes('the certificate in service stays')
    await until(async () => failed() || (await shown(router)).issuer === 'CN=Test Authority')
    expect(router.output()).not.toContain('the certificate in service stays')
    const certificate = await shown(router)
    expect(certificate.issuer).toBe('CN=Test Authority')
    expect(certificate.checkHost('router.test')).toBe('router.test')
    expect(await attestation(router)).toContain(spkiOf(certificate))
  })

  test('are renewed with a new key, which the attestation names before it is shown', async () => {
    const before = spkiOf(await shown(router))
    const lying: string[] = []
    router.signal('SIGUSR2')
    await until(async () => {
      // In this order: a key that is shown must be in an attestation asked for after it.
      const key = spkiOf(await shown(router))
      const text = await attestation(router)
      if (key !== before && !text.includes(key)) lying.push(key)
      return key !== before
    })
    expect(lying).toEqual([])
    expect(spkiOf(await shown(router))).not.toBe(before)
    expect(acme.issued).toHaveLength(2)
    expect(await attestation(router)).toContain(spkiOf(await shown(router)))
  })
})

describe('a chain handed in for the exported request', () => {
  test('is shown after SIGHUP', async () => {
    const authority = await makeTestAuthority()
    const chain = join(tmpdir(), `cmr-chain-${process.pid}.pem`)
    const router = await startServe({
      config: config({ domains: ['router.test'] }),
      args: ['--tls-chain', chain],
    })
    const command = join(PROJECT_DIR, 'src/cli/main.ts')
    const args = [command, 'serve', 'csr', '--state-dir', router.stateDir]
    const csr = execFileSync(process.execPath, args, { encoding: 'utf8' })
    expect(csr).toMatch(/^-----BEGIN CERTIFICATE REQUEST-----\n/)
    writeFileSync(chain, await authority.sign(csr))
    router.signal('SIGHUP')
    await until(async () => (await shown(router)).issuer === 'CN=Test Authority')
    expect((await shown(router)).issuer).toBe('CN=Test Authority')
    expect(await attestation(router)).toContain(spkiOf(await shown(router)))
    rmSync(chain)
    await router.remove()
  })
})
