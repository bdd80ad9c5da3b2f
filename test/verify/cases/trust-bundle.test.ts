import { beforeAll, describe, expect, test } from 'vitest'
import { toBase64Url, utf8 } from '../../../src/protocol/bytes.ts'
import { fetchTrustBundle } from '../../../src/verify/fetch-trust-bundle.ts'
import { verifyTrustBundle, type AcceptedBundle } from '../../../src/verify/trust-bundle.ts'
import { NOW } from '../../support/synthetic-snp.ts'
import {
  bundleHeader,
  bundleOf,
  inDays,
  makeWorld,
  signBundle,
  signJws,
  type World,
} from '../../support/synthetic-world.ts'
import { expectMalformed, expectOnly, failures } from '../../support/verdicts.ts'

let world: World
beforeAll(async () => {
  world = await makeWorld()
})

const judge = (text: string, lastAccepted?: AcceptedBundle) =>
  verifyTrustBundle(text, world.root.jwk, { now: NOW, environments: ['production'], lastAccepted })

const answer = (body: string, init?: ResponseInit) => async () => new Response(body, init)

test('the bundle that every case starts from holds, and is what to remember', async () => {
  const text = await signBundle(world)
  const result = await judge(text)
  expect(failures(result)).toEqual([])
  expect(result.accepted).toMatchObject({ root: world.root.kid, version: 7 })
  expect(failures(await judge(text, result.accepted))).toEqual([])
})

describe('trust bundle', () => {
  test('a version lower than the last seen one fails', async () => {
    const { accepted } = await judge(await signBundle(world))
    const result = await judge(await signBundle(world, { version: 6 }), accepted)
    expectOnly(result, 'trust_bundle_version', 'version 6 is older than 7, seen before')
    expect(result.bundle).toBeUndefined()
    expect(failures(await judge(await signBundle(world, { version: 8 }), accepted))).toEqual([])
    const otherRoot = accepted && { ...accepted, root: 'another' }
    expect(failures(await judge(await signBundle(world, { version: 6 }), otherRoot))).toEqual([])
  })

  test('other content under the version last seen fails', async () => {
    const { accepted } = await judge(await signBundle(world))
    const result = await judge(await signBundle(world, { min_guest_svn: 1 }), accepted)
    expectOnly(result, 'trust_bundle_version', 'another bundle of version 7 was seen before')
  })

  test('a bundle that expired or is not yet in force fails', async () => {
    const expired = await judge(await signBundle(world, { expires_at: inDays(0) }))
    expectOnly(expired, 'trust_bundle_dates', `expired at ${inDays(0)}`)
    const early = await judge(await signBundle(world, { not_before: inDays(1) }))
    expectOnly(early, 'trust_bundle_dates', `not in force before ${inDays(1)}`)
  })

  test('a bundle issued in the future fails', async () => {
    const result = await judge(await signBundle(world, { issued_at: inDays(3) }))
    expectOnly(result, 'trust_bundle_dates', `issued in the future, at ${inDays(3)}`)
  })

  test('a bundle signed by a delegated key fails', async () => {
    const payload = JSON.stringify(bundleOf(world))
    const header = bundleHeader(world.root)
    const result = await judge(await signJws(header, payload, world.manifestKey))
    expectOnly(result, 'trust_bundle_signature', 'the signature does not verify')
    const named = await judge(await signBundle(world, {}, world.manifestKey))
    expect(failures(named)).toEqual([
      `trust_bundle_header: kid is ${world.manifestKey.kid} instead of ${world.root.kid}`,
      'trust_bundle_signature: the signature does not verify',
    ])
    expect(named.bundle).toBeUndefined()
  })

  test('a bundle of another environment fails', async () => {
    const result = await judge(await signBundle(world, { environment: 'staging' }))
    expectOnly(result, 'trust_bundle_environment', 'made for staging, not for production')
  })

  test('a bundle from another origin, by redirect or oversized fails', async () => {
    const url = 'https://router.example/.well-known/trust.json'
    const origin = 'https://router.example'
    const published = JSON.stringify({ trust_bundle_jws: await signBundle(world) })
    const good = await fetchTrustBundle(url, origin, answer(published))
    expect(failures(await judge(good.jws ?? ''))).toEqual([])
    for (const other of ['https://evil.example/trust.json', 'http://router.example/', '/x', '']) {
      const result = await fetchTrustBundle(other, origin, answer(published))
      expectOnly(result, 'trust_bundle_origin', / instead of https:\/\/router\.example$/)
    }
    const location = { location: 'https://evil.example/' }
    for (const status of [301, 302, 307]) {
      const moved = await fetchTrustBundle(url, origin, answer('', { status, headers: location }))
      expectOnly(moved, 'trust_bundle_origin', 'the address redirects')
    }
    const missing = await fetchTrustBundle(url, origin, answer('', { status: 404 }))
    expectOnly(missing, 'trust_bundle_origin', 'the address answers 404')
    const large = await fetchTrustBundle(url, origin, answer(' '.repeat(1_048_577)))
    expectOnly(large, 'trust_bundle_origin', 'more than 1048576 bytes')
    const attempt = () => fetchTrustBundle(url, origin, answer('{}'))
    await expectMalformed(attempt, 'published trust bundle', /^trust_bundle_jws: /)
  })

  test('nothing of a bundle is read before its signature is verified', async () => {
    const payload = toBase64Url(utf8('no json at all'))
    const [header, , signature] = (await signBundle(world)).split('.')
    const result = await judge(`${header}.${payload}.${signature}`)
    expectOnly(result, 'trust_bundle_signature', 'the signature does not verify')
  })

  test('a root key with its private half, or of another kind, is malformed', async () => {
    const text = await signBundle(world)
    const options = { now: NOW, environments: ['production'] }
    const secret = () => verifyTrustBundle(text, { ...world.root.jwk, d: 'AAAA' }, options)
    await expectMalformed(secret, 'release root key', /^d: /)
    const rsa = () => verifyTrustBundle(text, { kty: 'RSA', n: 'AQAB', e: 'AQAB' }, options)
    await expectMalformed(rsa, 'release root key', /^kty: /)
  })
})
