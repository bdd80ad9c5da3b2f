import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  currentBundle,
  startPublishedRouter,
  type PublishedRouter,
} from '../../support/published-router.ts'
import { REAL_FOLDER } from '../../support/real-files.ts'
import { bundleOf, envelopeOf, signBundle, type World } from '../../support/synthetic-world.ts'
import { failedChecks, summaryOf, verify } from '../../support/verify-command.ts'

let router: PublishedRouter
let world: World
let file: PublishedRouter['file']

beforeAll(async () => {
  router = await startPublishedRouter()
  world = router.world
  file = (name) => router.file(name)
}, 60_000)
afterAll(() => router.close())

const stateless = ['--state', 'none', '--json']

const judgeRouter = (address: string, ...more: string[]) =>
  verify('attestation', address, '--root-key', file('root.json'), ...more)

describe('verify attestation', () => {
  test('a router on an allowed simulated platform is valid, its live key and a nonce of ours checked', async () => {
    const run = await judgeRouter(router.secure, '--allow-simulated', ...stateless)
    expect(summaryOf(run)).toMatch(
      /^VALID ON A SIMULATED PLATFORM, which proves nothing about any machine: this connection ends in /,
    )
    expect(failedChecks(run)).toEqual([])
    expect(run.out).toMatch(/"name": "tls_key",\s+"ok": true/)
    expect(run.out).toMatch(/"name": "nonce",\s+"ok": true/)
    expect(run.code).toBe(0)
  })

  test('the HPKE key that it serves must be the one that the report names', async () => {
    const judged = (address: string) => judgeRouter(address, '--allow-simulated', ...stateless)
    const honest = await judged(router.sealing)
    expect(failedChecks(honest)).toEqual([])
    expect(honest.out).toMatch(/"name": "hpke_key",\s+"ok": true/)
    expect(failedChecks(await judged(router.swapped))).toEqual(['hpke_key'])
    const garbled = await judged(router.garbled)
    expect(garbled.err).toContain('malformed HPKE key configuration: not one key for X25519')
    expect(garbled.code).toBe(2)
    const without = await judged(router.secure)
    expect(without.out).toContain('hpke_key: the router serves no key for bodies (404)')
  })

  test('a simulated platform that is not allowed fails by that name', async () => {
    const run = await judgeRouter(router.secure, '--environment', 'local', ...stateless)
    expect(failedChecks(run)).toEqual(['simulated_platform'])
    expect(run.code).toBe(1)
  })

  test('a captured envelope whose time was rewritten does not pass as fresh', async () => {
    const run = await judgeRouter(router.captured, '--allow-simulated', ...stateless)
    expect(failedChecks(run)).toEqual(['nonce'])
    expect(run.code).toBe(1)
    const chosen = await judgeRouter(router.secure, '--allow-simulated', '--nonce', 'ab'.repeat(32))
    expect(chosen.code).toBe(0)
  })

  test('the cached envelope is an exception, and the first line says whose clock it rests on', async () => {
    const run = await judgeRouter(
      router.captured,
      '--allow-simulated',
      '--cached',
      '--state',
      'none',
    )
    expect(run.out.split('\n')[0]).toContain("Freshness rests on the operator's clock.")
    expect(run.out).toContain("note  freshness: it rests on the operator's clock")
    const both = await judgeRouter(router.secure, '--cached', '--nonce', 'ab'.repeat(32))
    expect(both.err).toContain("option '--cached' cannot be used with option '--nonce <hex>'")
    expect(both.code).toBe(2)
  })

  test("AMD's revocation list is taken from the envelope or a file, reported where missing, and can be required", async () => {
    const told = await judgeRouter(router.secure, '--allow-simulated', ...stateless)
    expect(told.out).toContain("revocation: AMD's revocation list was not checked")
    const required = await judgeRouter(
      router.secure,
      '--allow-simulated',
      '--require-crl',
      ...stateless,
    )
    expect(failedChecks(required)).toEqual(['revocation'])
    const brought = await judgeRouter(
      router.listed,
      '--allow-simulated',
      '--require-crl',
      ...stateless,
    )
    expect(failedChecks(brought)).toEqual([])
    const given = ['--crl', file('revoked.crl')]
    const revoked = await judgeRouter(router.listed, '--allow-simulated', ...given, ...stateless)
    expect(failedChecks(revoked)).toEqual(['revocation'])
    expect(revoked.code).toBe(1)
  })

  test('plain HTTP on loopback is reported, for there is no key to compare', async () => {
    const run = await judgeRouter(router.plain, '--allow-simulated', '--state', 'none')
    expect(run.out).toContain('note  tls_key: plain HTTP: nothing tells where the connection ends')
    expect(run.out).toMatch(/^VALID ON A SIMULATED PLATFORM, .*where it ends is not proven\.\n/)
    expect(run.code).toBe(0)
  })

  test('another release root fails, and the envelope is not judged', async () => {
    const other = ['--root-key', file('other-root.json')]
    const run = await verify(
      'attestation',
      router.secure,
      ...other,
      '--allow-simulated',
      ...stateless,
    )
    expect(failedChecks(run)).toEqual(['trust_bundle_header', 'trust_bundle_signature'])
    expect(run.code).toBe(1)
  })

  test('an address with a password is an input error, for whoever answers there would get it unproven', async () => {
    const run = await judgeRouter('https://user:word@127.0.0.1:1')
    expect(run).toMatchObject({
      code: 2,
      err: 'error: leave user name and password out of the address: whoever answers there would get them, proven or not\n',
    })
  })

  test('an address where nothing answers is an input error', async () => {
    const run = await judgeRouter('http://127.0.0.1:1', '--json')
    expect(run.err).toMatch(/^error: no answer from http:\/\/127\.0\.0\.1:1: /)
    expect(JSON.parse(run.out)).toMatchObject({ ok: false, checks: [] })
    expect(run.code).toBe(2)
  })
})

const judgeBundle = (path: string, ...more: string[]) =>
  verify('bundle', path, '--root-key', file('root.json'), '--allow-simulated', ...more)

describe('verify bundle', () => {
  test('a bundle for simulated platforms fails by that name unless it is allowed', async () => {
    const asked = ['bundle', file('bundle.jws'), '--root-key', file('root.json')]
    const strict = await verify(...asked, '--environment', 'local', ...stateless)
    expect(failedChecks(strict)).toEqual(['simulated_platform'])
    expect(summaryOf(strict)).toMatch(/^NOT VALID ON A SIMULATED PLATFORM/)
    expect(strict.code).toBe(1)
    const allowed = await verify(...asked, '--allow-simulated', ...stateless)
    expect(summaryOf(allowed)).toMatch(/^VALID ON A SIMULATED PLATFORM/)
    expect(allowed.code).toBe(0)
  })

  test('the last good bundle is remembered, and an older one fails', async () => {
    const state = file('seen.json')
    expect((await judgeBundle(file('bundle.jws'), '--state', state)).code).toBe(0)
    expect(JSON.parse(await readFile(state, 'utf8'))).toMatchObject({
      [world.root.kid]: { version: 9 },
    })
    const older = await signBundle(world, { ...currentBundle(world), version: 8 })
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

const real = (name: string) => join(REAL_FOLDER, 'snp', name)

const judgeReport = (report: string, chain: string, ...more: string[]) =>
  verify('snp', '--report', report, '--chain', chain, '--now', '2026-11-20', ...more)

describe('verify snp', () => {
  test('a real report is valid, in a table for people', async () => {
    const run = await judgeReport(real('turin-v5.report.bin'), real('turin-v5.chain.pem'))
    expect(run.out).toMatch(/^VALID: a genuine AMD SEV-SNP report of a closed guest; /)
    expect(run.out).toMatch(/\n\nok {4}certificate_chain {5}the chip key is certified/)
    expect(run.out).toContain("note  revocation: AMD's revocation list was not checked")
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
