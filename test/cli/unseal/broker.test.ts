import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Broker, type Decision } from '../../../src/cli/unseal/broker.ts'
import { readHostsFile } from '../../../src/cli/unseal/hosts-file.ts'
import { LedgerPositions } from '../../../src/cli/unseal/ledger-positions.ts'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import { makeSigningKey } from '../../../src/enclave/release/signing-key.ts'
import { readRoot } from '../../../src/cli/verify/release-trust.ts'
import { listen } from '../../support/listen.ts'

let directory: string
const servers: Server[] = []

const at = (name: string) => join(directory, name)

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-broker-'))
  const root = await makeSigningKey({ extractable: false })
  writeFileSync(at('root.jwk.json'), JSON.stringify(root.publicJwk))
  writeFileSync(at('router.json'), '{}')
  writeFileSync(at('secrets.json'), '{"ADMIN_TOKEN": "x"}', { mode: 0o600 })
})
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
  rmSync(directory, { recursive: true })
})

/** A host that answers as it likes. */
async function startHost(answer: RequestListener): Promise<string> {
  const { keyPem: key, certPem: cert } = await makeTlsIdentity([], new Date())
  const server = createServer({ key, cert }, answer)
  servers.push(server)
  return `https://127.0.0.1:${await listen(server)}`
}

/** It serves, and publishes no evidence. */
const startServingHost = () =>
  startHost(({ url }, response) => {
    response.statusCode = url === '/healthz' ? 200 : 404
    response.end('{"status": "ok"}')
  })

const hostOf = (name: string, address: string) => ({
  name,
  address,
  configuration: 'router.json',
  secrets: 'secrets.json',
})

async function readHosts(hosts: readonly object[], more: object = {}) {
  const file = {
    ...more,
    root_key: 'root.jwk.json',
    operator_key: 'operator.private.jwk.json',
    state: 'none',
    ledger_positions: 'positions.json',
    hosts,
  }
  writeFileSync(at('hosts.json'), JSON.stringify(file))
  return readHostsFile(at('hosts.json'))
}

async function openBroker(hosts: readonly object[], log: (decision: Decision) => void) {
  const file = await readHosts(hosts)
  const broker = new Broker({
    file,
    rootJwk: await readRoot(file.root_key),
    operator: await makeSigningKey({ extractable: false }),
    positions: await LedgerPositions.open(file.ledger_positions),
    log,
  })
  return { broker, hosts: file.hosts }
}

describe('the broker', () => {
  test('decides about a host while another one keeps its answer to itself', async () => {
    const asked: string[] = []
    const release = Promise.withResolvers<void>()
    const silent = await startHost(({ url = '' }, response) => {
      asked.push(url)
      void release.promise.then(() => response.destroy())
    })
    const serving = await startServingHost()
    const decisions: Decision[] = []
    const decided = Promise.withResolvers<void>()
    const { broker, hosts } = await openBroker(
      [hostOf('silent', silent), hostOf('serving', serving)],
      (decision) => {
        decisions.push(decision)
        decided.resolve()
      },
    )
    const first = broker.lookAtAll(hosts)
    await decided.promise
    const unproven = {
      host: 'serving',
      decision: 'unproven',
      reason: 'trust_bundle_origin: the address answers 404',
    }
    expect(decisions).toEqual([unproven])
    // The next look does not wait for it either, and does not ask it twice.
    await broker.lookAtAll(hosts)
    expect(asked.length).toBeLessThanOrEqual(1)
    release.resolve()
    await first
    expect(decisions).toEqual([
      unproven,
      {
        host: 'silent',
        decision: 'unreachable',
        reason: `no answer from ${silent}: socket hang up`,
      },
    ])
    await broker.lookAtAll(hosts)
    expect(asked).toEqual(['/healthz', '/healthz'])
  })

  test("takes from its file whether AMD's revocation list is required, and requires none unasked", async () => {
    const hosts = [hostOf('guest', 'https://192.0.2.1')]
    expect(await readHosts(hosts)).toMatchObject({ require_crl: false })
    expect(await readHosts(hosts, { require_crl: true })).toMatchObject({ require_crl: true })
  })

  test('takes no list with one name for two hosts, whose ledgers it could not tell apart', async () => {
    const twice = [hostOf('guest', 'https://192.0.2.1'), hostOf('guest', 'https://192.0.2.2')]
    await expect(readHosts(twice)).rejects.toThrow(
      `${at('hosts.json')}: hosts: two hosts have the same name`,
    )
  })
})
