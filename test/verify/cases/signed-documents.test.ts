import { beforeAll, describe, expect, test } from 'vitest'
import { fromBase64Url, toBase64Url } from '../../../src/protocol/bytes.ts'
import type { JsonValue } from '../../../src/protocol/canonical-json.ts'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import { verifyReceipt } from '../../../src/verify/receipt.ts'
import { verifyTrustBundle } from '../../../src/verify/trust-bundle.ts'
import { NOW } from '../../support/synthetic-snp.ts'
import {
  bundleHeader,
  bundleOf,
  inDays,
  judgeEnvelope,
  makeKey,
  makeWorld,
  manifest,
  manifestHeader,
  signBundle,
  signJws,
  WORKLOAD,
  type TestKey,
  type World,
} from '../../support/synthetic-world.ts'
import { judgeReceipt, receiptOf } from '../../support/synthetic-receipt.ts'
import { expectMalformed, expectOnly, failures } from '../../support/verdicts.ts'

let world: World
beforeAll(async () => {
  world = await makeWorld()
})

const judgeBundle = (text: string, environments = ['production']) =>
  verifyTrustBundle(text, world.root.jwk, { now: NOW, environments })

/** A bundle with another header, signed by the root all the same. */
const headed = (changes: Record<string, JsonValue | undefined>) =>
  signJws({ ...bundleHeader(world.root), ...changes }, JSON.stringify(bundleOf(world)), world.root)

/** The verdict on an envelope with this manifest, which the bundle names by its tag. */
async function judgeManifest(manifestJws: string, legacy = false) {
  const tag = await sha256Hex(manifestJws)
  const entry = {
    measurement: '5a'.repeat(48),
    workload: WORKLOAD,
    workload_identity_tag: tag,
  }
  const delegation = legacy ? { delegated_keys: {} } : {}
  return judgeEnvelope(
    world,
    { claimed: { workload_identity_tag: tag, workload_identity_manifest_jws: manifestJws } },
    {
      bundle: { allowed_measurements: [entry], allowed_identity_tags: [tag], ...delegation },
    },
  )
}

describe('JWS', () => {
  test('an algorithm other than ES256 fails, none and HS256 included', async () => {
    for (const alg of ['none', 'HS256', 'ES384', 'RS256', 'es256', undefined]) {
      const result = await judgeBundle(await headed({ alg }))
      expectOnly(result, 'trust_bundle_header', `alg is ${alg ?? 'missing'} instead of ES256`)
      const receipt = await receiptOf(world, { header: { alg } })
      const judged = await judgeReceipt(world, receipt)
      expectOnly(judged, 'receipt_header', `alg is ${alg ?? 'missing'} instead of ES256`)
    }
    const unsigned = (await headed({ alg: 'none' })).replace(/[^.]+$/, '')
    expectOnly(await judgeBundle(unsigned), 'trust_bundle_header', 'alg is none instead of ES256')
  })

  test('a kid that is missing, unknown, doubled or of another role fails', async () => {
    const { kid } = world.receiptKey
    const missing = await receiptOf(world, { header: { kid: undefined } })
    expectOnly(await judgeReceipt(world, missing), 'receipt_header', 'kid is missing')
    for (const key of [world.root, world.manifestKey]) {
      const receipt = await receiptOf(world, { key, header: { kid: key.kid } })
      expectOnly(await judgeReceipt(world, receipt), 'receipt_key_known', 'the router has no key')
    }
    const jwk = { ...world.receiptKey.jwk, kid }
    const twice = { jwks: { keys: [jwk, jwk] } }
    const good = await receiptOf(world)
    const doubled = await judgeReceipt(world, good, twice)
    expectOnly(doubled, 'receipt_key_known', `the router has 2 keys ${kid}`)
    const stolen = await makeKey()
    const renamed = { jwks: { keys: [{ ...stolen.jwk, kid }] } }
    const named = await judgeReceipt(world, good, renamed)
    expectOnly(named, 'receipt_key_known', `key ${kid} is not the one its name says`)
    const byReceiptKey = await signJws(
      manifestHeader(world.receiptKey),
      manifest(),
      world.receiptKey,
    )
    const role = await judgeManifest(byReceiptKey)
    expect(failures(role).map((line) => line.split(':')[0])).toEqual([
      'manifest_header',
      'manifest_signature',
    ])
    const claimsRole = await signJws(
      manifestHeader(world.receiptKey),
      manifest(),
      world.manifestKey,
    )
    expectOnly(await judgeManifest(claimsRole), 'manifest_header', `kid is ${kid} instead of`)
  })

  test('a header that brings its own key or rules fails', async () => {
    const attacker = await makeKey()
    const members = {
      jwk: { kty: 'EC', crv: 'P-256', x: attacker.jwk.x, y: attacker.jwk.y },
      jku: 'https://evil.example/jwks.json',
      x5c: ['AAAA'],
      x5u: 'https://evil.example/chain.pem',
      crit: ['exp'],
      b64: false,
    }
    for (const [name, value] of Object.entries(members)) {
      const result = await judgeBundle(await headed({ [name]: value }))
      expectOnly(result, 'trust_bundle_header', `the header brings ${name}`)
      const receipt = await receiptOf(world, { header: { [name]: value } })
      expectOnly(await judgeReceipt(world, receipt), 'receipt_header', `the header brings ${name}`)
    }
  })

  test('a signature in DER, of another length or of zeros does not verify', async () => {
    const text = await signBundle(world)
    const [header, payload, signature = ''] = text.split('.')
    const raw = fromBase64Url(signature)
    const derLike = Uint8Array.from([0x30, 68, 2, 32, ...raw.slice(0, 32), 2, 32, ...raw.slice(32)])
    for (const other of [derLike, raw.slice(1), new Uint8Array([...raw, 0]), new Uint8Array(64)]) {
      const result = await judgeBundle(`${header}.${payload}.${toBase64Url(other)}`)
      expectOnly(result, 'trust_bundle_signature', 'the signature does not verify')
    }
  })

  test('base64url that is not canonical, padding, and 2 or 4 segments are malformed', async () => {
    const text = await signBundle(world)
    const [header = '', payload = '', signature = ''] = text.split('.')
    const last = signature.at(-1) ?? ''
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const sibling = alphabet[alphabet.indexOf(last) + 1] ?? ''
    const segments = [
      `${header}.${payload}.${signature.slice(0, -1)}${sibling}`,
      `${header}.${payload}.${signature}==`,
      `${header}.${payload}.${signature}\n`,
      ` ${text}`,
    ]
    for (const wrong of segments) {
      const attempt = () => judgeBundle(wrong)
      await expectMalformed(attempt, 'trust bundle', 'JWS segment not canonical base64url')
    }
    for (const wrong of [`${header}.${payload}`, `${text}.AAAA`, '', 'a']) {
      const attempt = () => judgeBundle(wrong)
      await expectMalformed(attempt, 'trust bundle', 'a compact JWS has three segments')
    }
  })

  test('a document of another type or schema in its place fails', async () => {
    const payload = JSON.stringify(bundleOf(world))
    const asManifest = await signJws(
      { ...bundleHeader(world.manifestKey), kid: world.manifestKey.kid },
      payload,
      world.manifestKey,
    )
    expectOnly(
      await judgeManifest(asManifest),
      'manifest_header',
      'typ is trust-bundle+jwt instead of workload-identity+jwt',
    )
    const typed = await signJws(manifestHeader(world.manifestKey), payload, world.manifestKey)
    const schema = () => judgeManifest(typed)
    await expectMalformed(schema, 'workload manifest', /^schema: /)
    const asReceipt = await receiptOf(world, { header: { typ: 'trust-bundle+jwt' } })
    expectOnly(
      await judgeReceipt(world, asReceipt),
      'receipt_header',
      'typ is trust-bundle+jwt instead of receipt+jwt',
    )
  })

  test('a member that stands there twice is malformed', async () => {
    const payload = JSON.stringify(bundleOf(world)).replace('{', '{"version":8,')
    const doubled = await signJws(bundleHeader(world.root), payload, world.root)
    await expectMalformed(() => judgeBundle(doubled), 'trust bundle', 'duplicate member name')
    const header = `{"alg":"ES256","alg":"none","kid":"${world.root.kid}","typ":"trust-bundle+jwt"}`
    const inHeader = await signJws(header, '{}', world.root)
    await expectMalformed(() => judgeBundle(inHeader), 'trust bundle', 'duplicate member name')
    const escaped = payload.replace('"version":8', String.raw`"versio\u006e":8`)
    const hidden = await signJws(bundleHeader(world.root), escaped, world.root)
    await expectMalformed(() => judgeBundle(hidden), 'trust bundle', 'duplicate member name')
  })

  test('a manifest by the root fails where the bundle delegates, and so does an empty one', async () => {
    const byRoot = await signJws(manifestHeader(world.root), manifest(), world.root)
    const claimed = await signJws(manifestHeader(world.manifestKey), manifest(), world.root)
    expectOnly(await judgeManifest(claimed), 'manifest_signature', 'the signature does not verify')
    expect(failures(await judgeManifest(byRoot))[0]).toMatch(/^manifest_header: kid is /)
    expect(failures(await judgeManifest(byRoot, true)), 'legacy bundle').toEqual([])
    const empty = await judgeManifest('')
    expectOnly(empty, 'manifest_signature', 'there is none: the build is not signed')
  })

  test('a delegated key that expired, is not yet in force or is revoked fails', async () => {
    const { jwk, kid } = world.manifestKey
    const dated = (not_before: string, not_after: string) => ({
      delegated_keys: { workload_manifest: { jwk, not_before, not_after } },
    })
    const expired = await judgeEnvelope(world, {}, { bundle: dated(inDays(-9), inDays(-1)) })
    expectOnly(expired, 'manifest_key', `key ${kid} expired at ${inDays(-1)}`)
    const early = await judgeEnvelope(world, {}, { bundle: dated(inDays(1), inDays(9)) })
    expectOnly(early, 'manifest_key', `key ${kid} is not yet in force`)
    const revoked = await judgeEnvelope(world, {}, { bundle: { revoked: { keys: [kid] } } })
    expectOnly(revoked, 'manifest_key', `key ${kid} is revoked`)
  })

  test('a key that is off its curve or of another curve is no key', async () => {
    const { kid, jwk } = world.receiptKey
    const receipt = await receiptOf(world)
    const crv = { jwks: { keys: [{ ...jwk, kid, crv: 'P-384' }] } }
    expectOnly(
      await judgeReceipt(world, receipt, crv),
      'receipt_key_known',
      `key ${kid} is no public ES256 signing key`,
    )
    const off = { ...jwk, y: toBase64Url(new Uint8Array(32).fill(5)) }
    const text = await signBundle(world)
    const options = { now: NOW, environments: ['production'] }
    const key: TestKey = { ...world.root, jwk: { ...off } }
    const result = await verifyTrustBundle(text, key.jwk, options)
    expect(failures(result)).toContain('trust_bundle_signature: the signature does not verify')
    const short = { ...jwk, x: toBase64Url(new Uint8Array(31)) }
    const attempt = () => verifyTrustBundle(text, short, options)
    await expectMalformed(attempt, 'release root key', 'x: not 32 bytes in base64url')
  })
})

test('a receipt of no JWKS at all is malformed', async () => {
  const text = await receiptOf(world)
  const attempt = () =>
    verifyReceipt(text, { jwks: [], now: NOW, router: 'signature_only', evidence: new Map() })
  await expectMalformed(attempt, 'JWKS', /./)
})
