import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { issueSimulatedChain } from '../../../src/enclave/simulated/chain.ts'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import type { TrustBundleInput } from '../../../src/protocol/trust-bundle.ts'
import { listen } from '../../support/listen.ts'
import { hasRealFiles, REAL_FOLDER } from '../../support/real-files.ts'
import { DAY_MS, syntheticAuthority } from '../../support/synthetic-snp.ts'
import { receiptOf, RECEIPT_ID } from '../../support/synthetic-receipt.ts'
import {
  bundleOf,
  envelopeOf,
  makeWorld,
  signBundle,
  type World,
} from '../../support/synthetic-world.ts'

const SCRIPT = fileURLToPath(new URL('../../../src/cli/main.ts', import.meta.url))

/** Each run of the command starts a process. */
vi.setConfig({ testTimeout: 30_000 })

interface Run {
  readonly code: number
  readonly out: string
  readonly err: string
}

function verify(...args: readonly string[]): Promise<Run> {
  return new Promise((resolve) => {
    execFile(process.execPath, [SCRIPT, 'verify', ...args], (error, out, err) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err })
    })
  })
}

const outcomeSchema = z.strictObject({
  ok: z.boolean(),
  checks: z.array(z.strictObject({ name: z.string(), ok: z.boolean(), detail: z.string() })),
  notes: z.array(z.string()).optional(),
})

function failedChecks({ out }: Run): string[] {
  const { checks } = outcomeSchema.parse(JSON.parse(out))
  return checks.filter(({ ok }) => !ok).map(({ name }) => name)
}

let folder: string
let world: World
let servers: Server[]
let plain: string
let secure: string

const file = (name: string) => join(folder, name)

const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString()

/** Dates around the real now, by which the command judges. */
function currentBundle(): Partial<TrustBundleInput> {
  const dates = { not_before: inDays(-1), not_after: inDays(9) }
  return {
    version: 9,
    environment: 'local',
    issued_at: inDays(-1),
    not_before: inDays(-1),
    expires_at: inDays(9),
    delegated_keys: { workload_manifest: { jwk: world.manifestKey.jwk, ...dates } },
  }
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cmr-verify-'))
  const tls = await makeTlsIdentity([], new Date())
  const chain = await issueSimulatedChain(await syntheticAuthority(), Date.now())
  world = { ...(await makeWorld()), chain, spki: tls.spkiSha256 }
  const bundle = await signBundle(world, currentBundle())
  const answer: RequestListener = (request, response) => {
    const url = new URL(request.url ?? '/', 'http://router.test')
    if (url.pathname === '/.well-known/trust.json') {
      response.end(JSON.stringify({ trust_bundle_jws: bundle }))
    } else if (url.pathname === '/attestation') {
      const nonce = url.searchParams.get('nonce') ?? ''
      void currentEnvelope(nonce).then((text) => response.end(text))
    } else response.writeHead(404).end()
  }
  servers = [
    createHttpServer(answer),
    createHttpsServer({ cert: tls.certPem, key: tls.keyPem }, answer),
  ]
  const [httpPort, httpsPort] = await Promise.all(servers.map(listen))
  plain = `http://127.0.0.1:${httpPort}`
  secure = `https://127.0.0.1:${httpsPort}`
  const { jwk, kid } = world.receiptKey
  await Promise.all([
    writeFile(file('root.json'), JSON.stringify(world.root.jwk)),
    writeFile(file('other-root.json'), JSON.stringify(world.manifestKey.jwk)),
    writeFile(file('jwks.json'), JSON.stringify({ keys: [{ ...jwk, kid }] })),
    writeFile(file('bundle.jws'), bundle),
    writeFile(file('request'), 'client request'),
    writeFile(file('response'), 'client response'),
    writeFile(
      file('receipt.json'),
      JSON.stringify({ id: RECEIPT_ID, receipt: await currentReceipt() }),
    ),
  ])
}, 60_000)

afterAll(async () => {
  for (const server of servers) server.close()
  await rm(folder, { recursive: true, force: true })
})

async function currentEnvelope(nonce: string): Promise<string> {
  const binding = {
    label: 'cmr/report-data/v1',
    receipt_key_thumbprint: world.receiptKey.kid,
    nonce,
  } as const
  const claimed = { issued_at: new Date().toISOString(), report_data_binding: binding }
  return JSON.stringify(await envelopeOf(world, { claimed }))
}

async function currentReceipt(): Promise<string> {
  const trust_bundle_jws = await signBundle(world, currentBundle())
  const evidence_raw = z.record(z.string(), z.json()).parse(JSON.parse(await currentEnvelope('')))
  const iat = Math.floor(Date.now() / 1000)
  return receiptOf(world, { claims: { iat }, router: { trust_bundle_jws, evidence_raw } })
}

const stateless = ['--state', 'none', '--json']

const judgeRouter = (address: string, ...more: string[]) =>
  verify('attestation', address, '--root-key', file('root.json'), ...more)

describe('verify attestation', () => {
  test('a router on an allowed simulated platform is valid, its live key and a nonce checked', async () => {
    const run = await judgeRouter(secure, '--allow-simulated', '--nonce', ...stateless)
    expect(failedChecks(run)).toEqual([])
    expect(run.out).toMatch(/"name": "tls_key",\s+"ok": true/)
    expect(run.out).toMatch(/"name": "nonce",\s+"ok": true/)
    expect(run.code).toBe(0)
  })

  test('a simulated platform that is not allowed fails by that name', async () => {
    const run = await judgeRouter(secure, '--environment', 'local', ...stateless)
    expect(failedChecks(run)).toEqual(['simulated_platform'])
    expect(run.code).toBe(1)
  })

  test('plain HTTP on loopback is told, for there is no key to compare', async () => {
    const run = await judgeRouter(plain, '--allow-simulated', '--state', 'none')
    expect(run.out).toContain('note  tls_key: plain HTTP: nothing tells where the connection ends')
    expect(run.out).toMatch(/\nVALID: all \d+ checks hold\n$/)
    expect(run.code).toBe(0)
  })

  test('another release root fails, and the envelope is not judged', async () => {
    const other = ['--root-key', file('other-root.json')]
    const run = await verify('attestation', secure, ...other, '--allow-simulated', ...stateless)
    expect(failedChecks(run)).toEqual(['trust_bundle_header', 'trust_bundle_signature'])
    expect(run.code).toBe(1)
  })

  test('an address where nobody answers is an input error', async () => {
    const run = await judgeRouter('http://127.0.0.1:1', '--json')
    expect(run.err).toMatch(/^error: no answer from http:\/\/127\.0\.0\.1:1: /)
    expect(JSON.parse(run.out)).toMatchObject({ ok: false, checks: [] })
    expect(run.code).toBe(2)
  })
})

const judgeBundle = (path: string, ...more: string[]) =>
  verify('bundle', path, '--root-key', file('root.json'), '--environment', 'local', ...more)

describe('verify bundle', () => {
  test('the last good bundle is remembered, and an older one fails', async () => {
    const state = file('seen.json')
    expect((await judgeBundle(file('bundle.jws'), '--state', state)).code).toBe(0)
    expect(JSON.parse(await readFile(state, 'utf8'))).toMatchObject({
      [world.root.kid]: { version: 9 },
    })
    const older = await signBundle(world, { ...currentBundle(), version: 8 })
    await writeFile(file('older.json'), JSON.stringify({ trust_bundle_jws: older }))
    const run = await judgeBundle(file('older.json'), '--state', state, '--json')
    expect(failedChecks(run)).toEqual(['trust_bundle_version'])
    expect(run.code).toBe(1)
    const forgotten = await judgeBundle(file('older.json'), '--state', 'none')
    expect(forgotten.code).toBe(0)
  })

  test('a damaged state file is an input error and not a fresh start', async () => {
    await writeFile(file('damaged.json'), '{"')
    const run = await judgeBundle(file('bundle.jws'), '--state', file('damaged.json'))
    expect(run.err).toMatch(/^error: the state file .* is damaged/)
    expect(run.code).toBe(2)
  })

  test('what is no JWS is an input error', async () => {
    await writeFile(file('plain.txt'), JSON.stringify(bundleOf(world)))
    const run = await judgeBundle(file('plain.txt'), '--state', 'none')
    expect(run.err).toMatch(/^error: .* holds no trust_bundle_jws\n$/)
    expect(run.code).toBe(2)
  })
})

const judgeReceipt = (...more: string[]) =>
  verify('receipt', file('receipt.json'), '--jwks', file('jwks.json'), ...more)
const root = () => ['--root-key', file('root.json')]

describe('verify receipt', () => {
  test('a receipt is valid for the bodies it is about', async () => {
    const bodies = ['--request', file('request'), '--response', file('response')]
    const run = await judgeReceipt(...bodies, ...root(), '--allow-simulated', '--json')
    expect(failedChecks(run)).toEqual([])
    expect(run.out).toContain('router_attestation.report_signature')
    expect(run.code).toBe(0)
  })

  test('a receipt fails for another body', async () => {
    const run = await judgeReceipt('--request', file('response'), '--json')
    expect(failedChecks(run)).toEqual(['client_request_digest'])
    expect(run.code).toBe(1)
  })

  test('a simulated router is told, and fails where its release root is asked for', async () => {
    const told = await judgeReceipt('--json')
    expect(failedChecks(told)).toEqual([])
    expect(told.out).toContain(
      'router_attestation: a simulated platform, no hardware stands behind it',
    )
    const strict = await judgeReceipt(...root(), '--environment', 'local', '--json')
    expect(failedChecks(strict)).toEqual(['router_attestation.simulated_platform'])
    expect(strict.code).toBe(1)
  })

  test('an unattested provider fails only where an attested one is required', async () => {
    const run = await judgeReceipt('--require-provider', '--json')
    expect(failedChecks(run)).toEqual(['provider_attested'])
    expect(run.code).toBe(1)
  })

  test('a receipt without a source of keys is a usage error', async () => {
    const run = await verify('receipt', file('receipt.json'))
    expect(run.err).toBe('error: give --base-url or --jwks\n')
    expect(run.code).toBe(2)
  })
})

const real = (name: string) => join(REAL_FOLDER, 'snp', name)

const judgeReport = (report: string, chain: string, ...more: string[]) =>
  verify('snp', '--report', report, '--chain', chain, '--now', '2026-11-20', ...more)

describe.skipIf(!hasRealFiles)('verify snp', () => {
  test('a real report is valid, in a table for people', async () => {
    const run = await judgeReport(real('turin-v5.report.bin'), real('turin-v5.chain.pem'))
    expect(run.out).toMatch(/^ok {4}certificate_chain {5}the chip key is certified/)
    expect(run.out).toMatch(/\nVALID: all 30 checks hold\n$/)
    expect(run.code).toBe(0)
  })

  test('a report of another chip fails, and JSON says why', async () => {
    const switches = ['--min-report-version', '2', '--json']
    const run = await judgeReport(
      real('other-chip.report.bin'),
      real('other-chip.chain.pem'),
      ...switches,
    )
    expect(failedChecks(run)).toEqual(['report_signature', 'chip_id'])
    expect(run.code).toBe(1)
  })

  test('a simulated platform is refused here, always', async () => {
    const report = Buffer.from((await envelopeOf(world)).snp_report_b64, 'base64')
    await writeFile(file('report.bin'), report)
    await writeFile(file('chain.pem'), world.chain.pem)
    const run = await verify(
      'snp',
      '--report',
      file('report.bin'),
      '--chain',
      file('chain.pem'),
      '--json',
    )
    expect(failedChecks(run)).toEqual(['simulated_platform'])
    const allowed = await judgeReport(file('report.bin'), file('chain.pem'), '--allow-simulated')
    expect(allowed.err).toContain("unknown option '--allow-simulated'")
    expect(allowed.code).toBe(2)
  })

  test('a report cut short, a file that is not there and a bad option are input errors', async () => {
    const short = (await readFile(real('turin-v5.report.bin'))).subarray(0, 1183)
    await writeFile(file('short.bin'), short)
    const chain = real('turin-v5.chain.pem')
    const cut = await judgeReport(file('short.bin'), chain)
    expect(cut.err).toBe('error: malformed SNP report: 1183 bytes long instead of 1184\n')
    const absent = await judgeReport(file('absent.bin'), chain)
    expect(absent.err).toMatch(/^error: cannot read .*: ENOENT\n$/)
    const version = await judgeReport(file('short.bin'), chain, '--min-report-version', '6')
    expect(version.err).toContain('a report version is 2, 3, 4 or 5.')
    expect([cut.code, absent.code, version.code]).toEqual([2, 2, 2])
  })
})
