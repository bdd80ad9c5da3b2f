import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import { makeSigningKey, type SigningKey } from '../../../src/enclave/release/signing-key.ts'
import type { SimulatedChain } from '../../../src/enclave/simulated/chain.ts'
import type { DaemonTls } from '../../../src/protocol/boot.ts'
import { openEnvelopeHost, type EnvelopeHost } from '../../../src/standin/attested-envelope.ts'
import { TINFOIL_MEASUREMENT, tinfoilV3 } from '../../../src/standin/attested-tinfoil.ts'
import { createQuoteVerifier } from '../../../src/verify/tdx/quote.ts'
import { PROMPT, startAttested, type AttestedWorld } from '../../support/attested-provider.ts'
import { runChain } from '../../support/run-authority.ts'
import { aciKeyset, aciReport } from '../../support/synthetic-aci.ts'
import { COMPOSE_HASH, dstackReport, MEASUREMENT } from '../../support/synthetic-dstack.ts'
import { makeSyntheticIntel, type SyntheticIntel } from '../../support/synthetic-intel.ts'
import { answerAsIntel, fetchFrom, type PcsAnswers } from '../../support/synthetic-tdx.ts'

/**
 * One provider that lies to every adapter: with documents that are none, and with the honest evidence of another product,
 * of another machine, or of another time.
 */

let chain: SimulatedChain
let intel: SyntheticIntel
let pcs: PcsAnswers
let tls: DaemonTls
let root: SigningKey
let host: EnvelopeHost
let world: AttestedWorld | undefined

beforeAll(async () => {
  ;[chain, intel, tls, root] = await Promise.all([
    runChain(),
    makeSyntheticIntel(Date.now()),
    makeTlsIdentity([], new Date()),
    makeSigningKey({ extractable: false }),
  ])
  pcs = await answerAsIntel(intel, { now: Date.now() })
  host = await openEnvelopeHost({ root, chain, tlsSpkiSha256: tls.spkiSha256, now: Date.now })
})
afterEach(async () => {
  await world?.close()
  world = undefined
})

const WORKLOAD = {
  allowed_compose_hashes: [COMPOSE_HASH],
  allowed_measurements: [MEASUREMENT],
}

const ADAPTERS = ['envelope', 'tinfoil', 'dstack', 'aci'] as const
type Name = (typeof ADAPTERS)[number]

function policyOf(name: Name): Record<string, unknown> {
  return {
    envelope: { adapter: 'envelope', root_key: { ...root.publicJwk } },
    tinfoil: { adapter: 'tinfoil', allowed_measurements: [TINFOIL_MEASUREMENT] },
    dstack: { adapter: 'dstack', ...WORKLOAD, gpu: 'optional' },
    aci: { adapter: 'aci', ...WORKLOAD },
  }[name]
}

/** The honest answer of each product to its own question. */
const HONEST: Readonly<Record<Name, (nonce: string, spki: string) => Promise<string>>> = {
  envelope: (nonce) => host.envelope(nonce),
  tinfoil: (nonce, spki) => tinfoilV3({ chain, tlsSpkiSha256: spki }, nonce),
  dstack: async (nonce, spki) =>
    JSON.stringify(
      await dstackReport(intel, {
        nonce,
        tlsSpkiSha256: spki,
      }),
    ),
  aci: async (nonce, spki) =>
    JSON.stringify(
      await aciReport(intel, {
        nonce,
        keyset: aciKeyset(spki),
      }),
    ),
}

async function start(name: Name, answer: (nonce: string) => Promise<string> | string) {
  world = await startAttested({
    attestation: policyOf(name),
    tls,
    documents: ({ pathname, searchParams }) =>
      pathname === '/.well-known/trust.json' ? host.trust : answer(searchParams.get('nonce') ?? ''),
    deps: {
      ownSimulated: { arkSpkiSha256: chain.arkSpkiSha256 },
      verifyQuote: createQuoteVerifier(intel.rootDer),
      webFetch: fetchFrom(pcs),
    },
  })
  return world
}

async function expectRefused({ settled, link, provider }: AttestedWorld, reason: RegExp) {
  expect(await settled()).toMatchObject({
    state: 'failed',
    reason: expect.stringMatching(reason),
  })
  await link.post('nova', PROMPT)
  expect(provider.received()).not.toContain(PROMPT)
}

const UNREAD = /^a document (cannot be read|is larger than any honest one|is of no format)/
const EARLIER = 'ab'.repeat(32)

describe.each(ADAPTERS)('a provider that lies to the adapter %s', (name) => {
  it('is believed where it does not', async () => {
    const { settled } = await start(name, (nonce) => HONEST[name](nonce, tls.spkiSha256))
    expect(await settled()).toMatchObject({ state: 'verified', reason: null })
  })

  it.each<[string, () => string]>([
    ['nothing', () => ''],
    ['a page', () => '<!doctype html><title>hello</title>'],
    ['null', () => 'null'],
    ['a number', () => '1e999'],
    ['a text', () => '"text"'],
    ['a list', () => '[]'],
    ['an object without members', () => '{}'],
    ['lists a hundred thousand deep', () => '['.repeat(100_000) + ']'.repeat(100_000)],
    ['a member given twice', () => '{"a":1,"a":1}'],
    ['a prototype', () => '{"__proto__":{"intel_quote":"00"}}'],
    ['nine megabytes', () => `"${'x'.repeat(9_000_000)}"`],
    ['what no text is', () => '\ud800'],
  ])('is refused with %s', async (_what, document) => {
    await expectRefused(await start(name, document), UNREAD)
  })

  it.each(ADAPTERS.filter((other) => other !== name))(
    'is refused with the honest evidence of the product of %s',
    async (other) => {
      const lying = await start(name, (nonce) => HONEST[other](nonce, tls.spkiSha256))
      await expectRefused(lying, UNREAD)
    },
  )

  it('is refused with its own evidence of an earlier time', async () => {
    const earlier = await HONEST[name](EARLIER, tls.spkiSha256)
    await expectRefused(
      await start(name, () => earlier),
      /^the evidence was not made for our nonce/,
    )
  })

  it('is refused with every member of its evidence of another type', async () => {
    const { settled, standing } = await start(name, async (nonce) => {
      const honest: Record<string, unknown> = JSON.parse(await HONEST[name](nonce, tls.spkiSha256))
      return JSON.stringify(Object.fromEntries(Object.keys(honest).map((member) => [member, 7])))
    })
    await settled()
    expect(standing()).toMatchObject({ state: 'failed', reason: expect.stringMatching(UNREAD) })
  })
})

it.each<Exclude<Name, 'envelope'>>(['tinfoil', 'dstack', 'aci'])(
  'evidence of another machine of the same product is refused by the adapter %s',
  async (name) => {
    const relayed = await start(name, (nonce) => HONEST[name](nonce, 'cd'.repeat(32)))
    await expectRefused(
      relayed,
      /^the evidence vouches for another TLS key than the connection has/,
    )
  },
)
