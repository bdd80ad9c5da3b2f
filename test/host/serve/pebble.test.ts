import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { axios } from 'acme-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { acmeAccountKey, orderCertificate } from '../../../src/host/serve/acme-order.ts'
import { checkChain, isFor } from '../../../src/host/serve/chain.ts'
import { makeCsr } from '../../../src/host/serve/csr.ts'
import { makeLinkCertificates, LINK_HOST } from '../../../src/host/stack/link-certificates.ts'
import { openStateDir } from '../../../src/host/stack/state-dir.ts'
import { freePort } from '../../support/free-port.ts'
import { until } from '../../support/stack.ts'

function find(program: string): string {
  const script = `command -v ${program} 2>/dev/null`
  return execFileSync('sh', ['-c', script], { encoding: 'utf8' }).trim()
}

/** Debian's package "pebble", the test server of Let's Encrypt: where its programs are, or nothing. */
function findPrograms(): { pebble: string; dns: string } | undefined {
  try {
    return { pebble: find('pebble'), dns: find('pebble-challtestsrv') }
  } catch {
    return undefined
  }
}

const programs = findPrograms()
const children: ChildProcess[] = []
let directory: string

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-pebble-'))
})
afterAll(() => {
  for (const child of children) child.kill()
  rmSync(directory, { recursive: true })
})

function run(file: string, args: readonly string[]): void {
  const env = { ...process.env, PEBBLE_VA_NOSLEEP: '1' }
  children.push(spawn(file, args, { stdio: 'ignore', env }))
}

describe.skipIf(programs === undefined)('an order at Pebble (apt install pebble)', () => {
  test('ends in a chain for the key and the names that were asked for', async () => {
    const [port, management, challengePort, dnsPort] = await Promise.all(
      Array.from({ length: 4 }, () => freePort()),
    )
    const tls = (await makeLinkCertificates(Date.now())).server
    writeFileSync(join(directory, 'cert.pem'), tls.certPem)
    writeFileSync(join(directory, 'key.pem'), tls.keyPem)
    const config = {
      pebble: {
        listenAddress: `127.0.0.1:${port}`,
        managementListenAddress: `127.0.0.1:${management}`,
        certificate: join(directory, 'cert.pem'),
        privateKey: join(directory, 'key.pem'),
        httpPort: challengePort,
        tlsPort: challengePort,
      },
    }
    writeFileSync(join(directory, 'pebble.json'), JSON.stringify(config))
    const none = ['-http01', '', '-https01', '', '-tlsalpn01', '', '-management', '127.0.0.1:0']
    const dns = `127.0.0.1:${dnsPort}`
    run(programs?.dns ?? '', [
      ...none,
      '-dns01',
      dns,
      '-defaultIPv4',
      '127.0.0.1',
      '-defaultIPv6',
      '',
    ])
    run(programs?.pebble ?? '', ['-config', join(directory, 'pebble.json'), '-dnsserver', dns])
    axios.defaults.httpsAgent = new Agent({ ca: tls.certPem, servername: LINK_HOST })
    const url = `https://127.0.0.1:${port}/dir`
    await until(async () => (await axios.get(url).catch(() => undefined))?.status === 200)

    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    const keyPem = await acmeAccountKey(openStateDir(directory))
    const chain = await orderCertificate(
      { directory: url, email: 'ops@router.test', keyPem },
      await makeCsr(key, ['router.test']),
      { host: '127.0.0.1', port: challengePort ?? 0 },
    )
    expect(isFor(chain, key)).toBe(true)
    expect(checkChain(chain, ['router.test'], Date.now() + 1_000).to).toBeGreaterThan(Date.now())
  }, 60_000)
})
