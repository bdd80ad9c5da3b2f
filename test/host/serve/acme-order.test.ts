import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { acmeAccountKey, orderCertificate } from '../../../src/host/serve/acme-order.ts'
import { checkChain, isFor } from '../../../src/host/serve/chain.ts'
import { makeCsr } from '../../../src/host/serve/csr.ts'
import { openStateDir, type StateDir } from '../../../src/host/stack/state-dir.ts'
import { startAcmeServer, type AcmeServer } from '../../support/acme-server.ts'
import { freePort } from '../../support/free-port.ts'
import { listen } from '../../support/listen.ts'

const DOMAINS = ['router.test', 'api.router.test']

let directory: string
let state: StateDir
let challengePort: number
let server: AcmeServer

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-acme-'))
  state = openStateDir(directory)
  challengePort = await freePort()
  server = await startAcmeServer(() => challengePort)
})
afterAll(() => {
  server.close()
  rmSync(directory, { recursive: true })
})

function newKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

async function order(
  keyPem: string,
  domains: readonly string[],
  at = server.directory,
  limitMs?: number,
) {
  const account = { directory: at, email: 'ops@router.test', keyPem: await acmeAccountKey(state) }
  const challengeAt = { host: '127.0.0.1', port: challengePort }
  return orderCertificate(account, await makeCsr(keyPem, domains), challengeAt, limitMs)
}

describe('an order', () => {
  test('ends in a chain for the key and the names that were asked for', async () => {
    const key = newKey()
    const chain = await order(key, DOMAINS)
    expect(isFor(chain, key)).toBe(true)
    expect(checkChain(chain, DOMAINS, Date.now()).to).toBeGreaterThan(Date.now())
    expect(new X509Certificate(chain).subjectAltName).toBe('DNS:router.test, DNS:api.router.test')
  })

  test('is made under the account key that was kept', async () => {
    const key = await acmeAccountKey(state)
    await order(newKey(), DOMAINS)
    expect(await acmeAccountKey(state)).toBe(key)
  })

  test('fails with the reason of the authority when the challenge is not answered', async () => {
    const elsewhere = await startAcmeServer(() => 9)
    await expect(order(newKey(), DOMAINS, elsewhere.directory)).rejects.toThrow('fetch failed')
    elsewhere.close()
  })

  test('fails when the authority never answers', async () => {
    const silent = createServer(() => {})
    const address = `http://127.0.0.1:${await listen(silent)}/directory`
    await expect(order(newKey(), DOMAINS, address, 50)).rejects.toThrow(
      'the authority did not finish the order within 0.05 s',
    )
    silent.closeAllConnections()
    silent.close()
  })
})
