import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { parseCompactJws } from '../../../src/protocol/compact-jws.ts'
import { receiptClaimsSchema, type ReceiptClaims } from '../../../src/protocol/receipt.ts'
import { parseStrictJson } from '../../../src/protocol/strict-json.ts'
import {
  currentBundle,
  fromNow,
  startPublishedRouter,
  type PublishedRouter,
} from '../../support/published-router.ts'
import { run as runProgram } from '../../support/run-program.ts'
import { receiptOf } from '../../support/synthetic-receipt.ts'
import { makeKey, signBundle, type World } from '../../support/synthetic-world.ts'
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

const judgeReceipt = (...more: string[]) =>
  verify('receipt', file('receipt.json'), '--jwks', file('jwks.json'), '--state', 'none', ...more)
const POLICY = JSON.stringify({ adapter: 'dstack', allowed_compose_hashes: ['00'.repeat(32)] })

function readClaims(answer: string): ReceiptClaims {
  const { receipt } = z.object({ receipt: z.string() }).parse(JSON.parse(answer))
  return receiptClaimsSchema.parse(
    parseStrictJson(parseCompactJws(receipt, 'receipt').payload, 'receipt'),
  )
}

const root = () => ['--root-key', file('root.json')]

describe('verify receipt', () => {
  test('a receipt is valid for the bodies it is about', async () => {
    const bodies = ['--request', file('request'), '--response', file('response')]
    const run = await judgeReceipt(...bodies, ...root(), '--allow-simulated', '--json')
    expect(failedChecks(run)).toEqual([])
    expect(summaryOf(run)).toMatch(/^VALID ON A SIMULATED PLATFORM, which proves nothing about /)
    expect(run.out).toContain('router_attestation.report_signature')
    expect(run.code).toBe(0)
  })

  test('a receipt fails for another body', async () => {
    const bodies = ['--request', file('response')]
    const run = await judgeReceipt(...bodies, ...root(), '--allow-simulated', '--json')
    expect(failedChecks(run)).toEqual(['client_request_digest'])
    expect(run.code).toBe(1)
  })

  test('the endpoint is shown, and one that was not called or is not known fails', async () => {
    const endpoint = '/v1/messages'
    const allowed = [...root(), '--allow-simulated']
    const judge = async (claimed: string, ...more: string[]) => {
      const claims = { iat: Math.floor(Date.now() / 1000), endpoint: claimed }
      const path = await router.write(
        'endpoint.jws',
        await receiptOf(world, { claims, router: hop }),
      )
      return verify('receipt', path, '--jwks', file('jwks.json'), '--state', 'none', ...more)
    }
    const { router_attestation: hop } = readClaims(await readFile(file('receipt.json'), 'utf8'))
    const shown = await judge(endpoint, ...allowed, '--endpoint', endpoint)
    expect(shown.out).toMatch(
      /^ok {2} +endpoint +the exchange used this endpoint\n +\/v1\/messages$/m,
    )
    expect(shown.code).toBe(0)
    const other = await judge(endpoint, ...allowed, '--endpoint', '/v1/responses', '--json')
    expect(failedChecks(other)).toEqual(['endpoint'])
    const unknown = await judge('/v2/oracle', ...allowed)
    expect(unknown.out).toContain('no endpoint is known as /v2/oracle')
    expect(unknown.code).toBe(1)
  })

  test('without a release root nothing is judged', async () => {
    const run = await judgeReceipt('--allow-simulated', '--json')
    expect(run.err).toMatch(/^error: give --root-key, for without it nothing is proven about /)
    expect(JSON.parse(run.out)).toMatchObject({ ok: false, checks: [] })
    expect(run.code).toBe(2)
  })

  test('the signature alone is never a valid receipt, and the first line says what is not proven', async () => {
    const run = await judgeReceipt('--signature-only', '--allow-simulated')
    expect(run.out).toMatch(/^SIGNATURE ONLY: nothing was proven about the machine/)
    expect(run.code).toBe(3)
    const other = ['--request', file('response')]
    const failed = await judgeReceipt('--signature-only', '--allow-simulated', ...other, '--json')
    expect(failedChecks(failed)).toEqual(['client_request_digest'])
    expect(failed.code).toBe(1)
    const both = await judgeReceipt('--signature-only', ...root())
    expect(both.err).toContain("'--signature-only' cannot be used with option '--root-key <file>'")
    expect(both.code).toBe(2)
  })

  test('a simulated router fails by that name unless it is allowed, its signature alone included', async () => {
    const strict = await judgeReceipt(...root(), '--environment', 'local', '--json')
    expect(failedChecks(strict)).toEqual(['router_attestation.simulated_platform'])
    expect(strict.code).toBe(1)
    const alone = await judgeReceipt('--signature-only', '--json')
    expect(failedChecks(alone)).toEqual(['router_attestation.simulated_platform'])
    expect(alone.code).toBe(1)
  })

  test('a made-up key with a made-up key set and evidence that does not exist is not valid', async () => {
    const key = await makeKey()
    const nowhere = { sha256: 'c'.repeat(64), bytes: 9000 }
    const receipt_signature = {
      kid: key.kid,
      alg: 'ES256',
      verified: true,
      verification_mode: 'snp-envelope',
      verified_at: 1,
    } as const
    const forged = await receiptOf(world, {
      key,
      header: { kid: key.kid },
      claims: { receipt_signature, iat: Math.floor(Date.now() / 1000) },
      router: { evidence_raw: nowhere },
    })
    await router.write('forged.jws', forged)
    const keys = { keys: [{ ...key.jwk, kid: key.kid }] }
    await router.write('forged-jwks.json', JSON.stringify(keys))
    const source = [file('forged.jws'), '--jwks', file('forged-jwks.json'), '--state', 'none']
    const run = await verify('receipt', ...source, ...root(), '--json')
    expect(failedChecks(run)).toEqual(['router_attestation.hop_evidence', 'receipt_key'])
    expect(run.code).toBe(1)
  })

  test('a release that is revoked later is refused by a given bundle, by the router, and by what is remembered', async () => {
    const allowed = [...root(), '--allow-simulated', '--json']
    const revoked = { identity_tags: [{ value: world.tag, since: fromNow(1) }] }
    const later = await signBundle(world, { ...currentBundle(world), version: 10, revoked })
    await router.write('later.jws', later)
    const given = await judgeReceipt(...allowed, '--bundle', file('later.jws'))
    expect(failedChecks(given)).toEqual(['router_attestation.not_revoked'])
    const accepted = ['--bundle', file('later.jws'), '--accept-before-revocation']
    expect((await judgeReceipt(...allowed, ...accepted)).code).toBe(0)

    router.publish(later)
    const receipt = ['receipt', file('receipt.json'), '--base-url', router.plain, ...allowed]
    const state = ['--state', file('newest.json')]
    const fetched = await verify(...receipt, ...state)
    expect(failedChecks(fetched)).toEqual(['router_attestation.not_revoked'])

    router.publish(await readFile(file('bundle.jws'), 'utf8'))
    const remembered = await verify(...receipt, ...state)
    expect(failedChecks(remembered), 'the router hides the newer one').toEqual([
      'router_attestation.not_revoked',
    ])
    expect((await verify(...receipt, '--state', 'none')).code).toBe(0)

    const fork = await router.write('fork.jws', await signBundle(world, currentBundle(world)))
    const forked = await judgeReceipt(...allowed, '--bundle', fork)
    expect(failedChecks(forked), 'another one of the version in the receipt').toEqual([
      'newest_bundle',
    ])
  })

  test('a router with a certificate of its own is asked for all that it publishes, and gets no API key', async () => {
    // Of this machine too, but not by its name.
    const base = router.secure.replace('127.0.0.1', '0.0.0.0')
    const allowed = ['--allow-simulated', '--state', 'none', '--base-url', base]
    const known = await verify('receipt', file('receipt.json'), ...allowed, ...root(), '--json')
    expect(failedChecks(known)).toEqual([])
    expect(known.code).toBe(0)
    const untrusted = 'for no authority vouches for its certificate (DEPTH_ZERO_SELF_SIGNED_CERT)'
    const nowhere = { evidence_raw: { sha256: 'c'.repeat(64), bytes: 9000 } }
    const wanting = await router.write('wanting.jws', await receiptOf(world, { router: nowhere }))
    const env = { ...process.env, CMR_API_KEY: 'secret-key' }
    const keyed = await runProgram(['verify', 'receipt', wanting, ...allowed, ...root()], { env })
    expect(keyed).toEqual({
      code: 2,
      out: '',
      err: `error: CMR_API_KEY is not sent to ${base}, ${untrusted}: give --evidence from a file\n`,
    })
    // With nothing but a signature, the certificate alone says whose keys they are.
    expect(await verify('receipt', wanting, ...allowed, '--signature-only')).toEqual({
      code: 2,
      out: '',
      err: `error: ${base} is not asked for its keys, ${untrusted}: give --root-key, or --jwks from a file\n`,
    })
  })

  test('the answer of a model is not a receipt, and it is said where its receipt is', async () => {
    const id = '5f0c0b1e-0e0c-4a58-9d0f-2f6a3f7f5a55'
    const answer = await router.write('answer.json', `{"service": {"receipt_id": "${id}"}}`)
    const run = await verify('receipt', answer, '--jwks', file('jwks.json'), ...root())
    expect(run.err).toBe(
      `error: malformed receipt file: this is a model's answer; its receipt is what the router answers to GET /v1/receipts/${id}\n`,
    )
    expect(run.code).toBe(2)
  })

  test('an unattested provider fails only where an attested one is required', async () => {
    const allowed = [...root(), '--allow-simulated', '--json']
    const run = await judgeReceipt('--require-provider', ...allowed)
    expect(failedChecks(run)).toEqual(['provider_attested'])
    expect(run.code).toBe(1)
  })

  test("a provider's root alone demands what its policy would: a nonce in the report, and a bound TLS key", async () => {
    const claims = { iat: Math.floor(Date.now() / 1000) }
    const { router_attestation: hop } = readClaims(await readFile(file('receipt.json'), 'utf8'))
    const provider = { ...hop, verified_at: claims.iat - 30 }
    const text = await receiptOf(world, {
      claims: { ...claims, inference_attestation: provider },
      router: hop,
    })
    await router.write('two-hops.jws', text)
    const source = [file('two-hops.jws'), '--jwks', file('jwks.json'), '--state', 'none']
    const judged = [...root(), '--provider-root-key', file('root.json'), '--allow-simulated']
    const run = await verify('receipt', ...source, ...judged, '--require-provider', '--json')
    expect(failedChecks(run)).toEqual([
      'inference_attestation.provider_policy',
      'provider_attested',
    ])
    expect(run.code).toBe(1)
  })

  test('a time that cannot be written down is no receipt, and no crash', async () => {
    const block = {
      verified: true,
      verification_mode: 'dstack-tdx',
      attestation_strength: 'hardware',
    }
    const inference_attestation = { ...block, verified_at: 1e15, evidence_raw: { quote: 'AAAA' } }
    await router.write('late.jws', await receiptOf(world, { claims: { inference_attestation } }))
    await router.write('policy.json', POLICY)
    const source = [file('late.jws'), '--jwks', file('jwks.json'), '--state', 'none', ...root()]
    const run = await verify('receipt', ...source, '--provider-policy', file('policy.json'))
    expect(run.err).toMatch(/^error: malformed receipt: inference_attestation.verified_at: /)
    expect(run.code).toBe(2)
  })

  test('nothing that a receipt says steers the terminal', async () => {
    const steering = 'glm\u009b31m\u001b[2J\u202e'
    const receipt = await receiptOf(world, { claims: { requested_route: steering } })
    const path = await router.write('steering.jws', receipt)
    const source = [path, '--jwks', file('jwks.json'), '--signature-only', '--requested-route', 'x']
    for (const form of [[], ['--json']]) {
      const run = await verify('receipt', ...source, ...form)
      expect(run.out).toMatch(/^[\x20-\x7e\n]+$/)
      expect(run.code).toBe(1)
    }
    const { out } = await verify('receipt', ...source, '--json')
    expect(JSON.stringify(JSON.parse(out))).toContain(JSON.stringify(steering).slice(1, -1))
  })

  test('a receipt without a source of keys is a usage error', async () => {
    const run = await verify('receipt', file('receipt.json'), ...root())
    expect(run.err).toBe('error: give --base-url or --jwks\n')
    expect(run.code).toBe(2)
  })
})
