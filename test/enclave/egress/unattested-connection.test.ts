import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { listen } from '../../support/listen.ts'
import { makeTestAuthority, type TestAuthority } from '../../support/test-authority.ts'

let directory: string
let authority: TestAuthority
let server: Server

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-unattested-'))
  authority = await makeTestAuthority()
  writeFileSync(join(directory, 'root.pem'), authority.rootPem)
})
afterEach(() => {
  server.closeAllConnections()
  server.close()
})
afterAll(() => rmSync(directory, { recursive: true }))

const source = (path: string) => new URL(`../../../src/enclave/${path}`, import.meta.url).href

/** Calls a provider at that port of localhost in a process that knows another authority. */
const calling = (port: number) => `
  import { Exchange } from '${source('egress/exchange.ts')}'
  import { openUnattestedConnection } from '${source('egress/unattested-connection.ts')}'
  const peer = { isTls: true, host: 'localhost', port: ${port}, publicOnly: false }
  const target = { ...peer, origin: 'https://localhost:${port}', connectMs: 30_000, now: () => performance.now() }
  try {
    const connection = await openUnattestedConnection(target)
    const exchange = new Exchange((answer) => process.stdout.write(String(answer.statusCode)), () => connection.close())
    connection.send({ method: 'GET', path: '/', headers: {}, body: null }, exchange)
  } catch ({ message }) {
    process.stdout.write(message)
  }
`

async function called(port: number): Promise<string> {
  const args = ['--input-type=module', '--eval', calling(port)]
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: join(directory, 'root.pem') }
  return (await promisify(execFile)(process.execPath, args, { env })).stdout
}

it.each([
  ['TLSv1.3', 'localhost', '200'],
  ['TLSv1.2', 'localhost', '200'],
  ['TLSv1.1', 'localhost', 'connect: unreachable'],
  ['TLSv1.3', 'other.example', 'connect: unreachable'],
] as const)(
  'over %s to a host whose certificate is valid for %s, by an authority that the operator adds: %s',
  async (version, name, outcome) => {
    const { certPem: cert, keyPem: key } = await authority.issue(name)
    const versions = { minVersion: version, maxVersion: version }
    const ciphers = 'DEFAULT@SECLEVEL=0'
    server = createServer({ cert, key, ...versions, ciphers }, (_, response) => response.end())
    expect(await called(await listen(server))).toBe(outcome)
  },
)
