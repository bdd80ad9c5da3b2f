import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import { makeSigningKey, type SigningKey } from '../../../src/enclave/release/signing-key.ts'
import type { SimulatedChain } from '../../../src/enclave/simulated/chain.ts'
import { runChain } from '../../support/run-authority.ts'
import type { DaemonTls } from '../../../src/protocol/boot.ts'
import { fromBase64, toBase64 } from '../../../src/protocol/bytes.ts'
import { openEnvelopeHost, type EnvelopeHost } from '../../../src/standin/attested-envelope.ts'
import {
  PROMPT,
  startAttested,
  type AttestedSetting,
  type AttestedWorld,
  type Documents,
} from '../../support/attested-provider.ts'
import { failuresOf, rejudge } from '../../support/rejudge.ts'

let chain: SimulatedChain
let tls: DaemonTls
let otherTls: DaemonTls
let root: SigningKey
let site: EnvelopeHost
let world: AttestedWorld | undefined

beforeAll(async () => {
  ;[chain, tls, otherTls, root] = await Promise.all([
    runChain(),
    makeTlsIdentity([], new Date()),
    makeTlsIdentity([], new Date()),
    makeSigningKey({ extractable: false }),
  ])
  site = await siteFor({})
})
afterEach(async () => {
  await world?.close()
  world = undefined
})

function siteFor(change: Partial<Parameters<typeof openEnvelopeHost>[0]>): Promise<EnvelopeHost> {
  const now = Date.now
  return openEnvelopeHost({ root, chain, tlsSpkiSha256: tls.spkiSha256, now, ...change })
}

type Change = (envelope: Record<string, unknown>) => Record<string, unknown>

function documents(
  of: EnvelopeHost,
  change: Change = (same) => same,
  nonceOf = (nonce: string) => nonce,
): Documents {
  return async ({ pathname, searchParams }) => {
    if (pathname === '/.well-known/trust.json') return of.trust
    if (pathname !== '/attestation') return undefined
    const text = await of.envelope(nonceOf(searchParams.get('nonce') ?? ''))
    return JSON.stringify(change(JSON.parse(text)))
  }
}

/** JSON leaves out what is undefined. */
const unbind: Change = (envelope) => ({ ...envelope, report_data_binding: undefined })

const later = () => Date.now() + 2000

function setting(change: Partial<AttestedSetting> = {}): AttestedSetting {
  return {
    attestation: { adapter: 'envelope', root_key: { ...root.publicJwk } },
    documents: documents(site),
    tls,
    ...change,
    deps: { ownSimulated: { arkSpkiSha256: chain.arkSpkiSha256 }, ...change.deps },
  }
}

/** Production mode whose configuration allows the simulated platform. */
const rehearsal = () => ({
  mode: 'production' as const,
  allowSimulated: true,
  attestation: { ...setting().attestation, environments: ['local'] },
})

async function start(change: Partial<AttestedSetting> = {}): Promise<AttestedWorld> {
  world = await startAttested(setting(change))
  return world
}

describe('a host that publishes an envelope', () => {
  it('may be on the simulated platform of a production router whose configuration allows it, and its block says so', async () => {
    const { proofs, link, settled } = await start(rehearsal())
    expect(await settled()).toMatchObject({ state: 'verified', reason: null })
    const { headers } = await link.post('nova', PROMPT)
    expect(proofs.hop('nova', String(headers['x-cmr-evidence-sha256']))?.block).toMatchObject({
      verified: true,
      attestation_strength: 'simulated',
    })
  })

  it('is proven, called, and described in a receipt by what its evidence says', async () => {
    const { proofs, provider, link, settled } = await start()
    const standing = await settled()
    expect(standing).toMatchObject({ adapter: 'envelope', state: 'verified', reason: null })
    const life = Date.parse(standing.expires_at ?? '') - Date.parse(standing.verified_at ?? '')
    expect(life).toBeGreaterThan(3_590_000)
    expect(life).toBeLessThanOrEqual(3_600_000)
    const answer = await link.post('nova', PROMPT)
    expect(answer).toMatchObject({ status: 200, text: '{"ok":true}' })
    expect(provider.received()).toContain(PROMPT)
    const digest = String(answer.headers['x-cmr-evidence-sha256'])
    const hop = proofs.hop('nova', digest)
    expect(hop?.block).toMatchObject({
      tee: 'sev-snp',
      verified: true,
      verification_mode: 'snp-envelope',
      attestation_strength: 'simulated',
      evidence_summary: {
        nonce_bound: true,
        environment: 'local',
        tls_spki_sha256: tls.spkiSha256,
        evidence_sha256: digest,
        dbgstat: 'disabled',
      },
    })
    expect(hop?.evidenceRefs).toEqual([digest])
    expect(JSON.parse(Buffer.from(proofs.evidence(digest) ?? []).toString())).toMatchObject({
      schema: 'service.attestation/v1',
    })
    const policy = { adapter: 'envelope', root_key: { ...root.publicJwk } }
    const environments = ['local']
    const simulated = { arkSpkiSha256: chain.arkSpkiSha256 }
    const judged = await rejudge(proofs, digest, policy, { simulated, environments })
    expect(failuresOf(judged)).toEqual([])
    expect(judged.simulated).toBe(true)
    expect(failuresOf(await rejudge(proofs, digest, policy, { environments }))).toEqual([
      'provider_policy: the hardware evidence does not hold (simulated_platform)',
    ])
  })

  it('is called no more once its proof has ended', async () => {
    const { link, settled, advance, provider, standing } = await start()
    await settled()
    advance(3_601_000)
    expect(standing().state).not.toBe('verified')
    const answer = await link.post('nova', PROMPT)
    expect(answer.headers['x-cmr-egress-error']).toBe('provider_unproven')
    expect(provider.received()).not.toContain(PROMPT)
  })

  it('that changes its key proves the new one before it gets another prompt', async () => {
    // Its bundle is of a later second, and so of a higher version.
    const second = await siteFor({ tlsSpkiSha256: otherTls.spkiSha256, now: later })
    let current = site
    const { provider, link, settled } = await start({
      documents: (url) => documents(current)(url),
    })
    await settled()
    const before = await link.post('nova', 'one')
    provider.changeKey(otherTls)
    await provider.cut()
    current = second
    const after = await link.post('nova', 'two')
    expect(after.status).toBe(200)
    expect(after.headers['x-cmr-evidence-sha256']).not.toBe(before.headers['x-cmr-evidence-sha256'])
  })

  it('that changes its key and cannot prove it gets no prompt', async () => {
    const { provider, link, settled, standing } = await start()
    await settled()
    provider.changeKey(otherTls)
    await provider.cut()
    const answer = await link.post('nova', PROMPT)
    expect(answer.headers['x-cmr-egress-error']).toBe('provider_unproven')
    expect(provider.received()).not.toContain(PROMPT)
    expect(standing()).toMatchObject({
      state: 'failed',
      reason: 'the evidence vouches for another TLS key than the connection has (tls_key)',
    })
  })

  it('that goes back to an older bundle is proven no more', async () => {
    let current = await siteFor({ now: later })
    const { proofs, settled } = await start({ documents: (url) => documents(current)(url) })
    await settled()
    current = site
    const evidence = proofs.channel('nova')?.evidence
    expect(evidence && (await proofs.reverify('nova', evidence))).toBeUndefined()
    expect((await settled()).reason).toBe('the trust bundle is not accepted (trust_bundle_version)')
  })

  it('without a bound nonce will do only where the operator says so', async () => {
    const unbound = documents(site, unbind)
    const optional = { ...setting().attestation, nonce: 'optional' }
    const { settled } = await start({ documents: unbound, attestation: optional })
    expect((await settled()).state).toBe('verified')
  })
})

const flip =
  (offset: number): Change =>
  (envelope) => {
    const report = fromBase64(String(envelope['snp_report_b64']))
    report[offset] = (report[offset] ?? 0) ^ 1
    return { ...envelope, snp_report_b64: toBase64(report) }
  }

const HARDWARE = 'the hardware evidence does not hold'
const TLS_KEY = 'the evidence vouches for another TLS key than the connection has'

describe('not a byte of a prompt goes to a host', () => {
  it.each<[string, () => Promise<Partial<AttestedSetting>>, string]>([
    [
      'whose report was changed',
      async () => ({ documents: documents(site, flip(0x90)) }),
      `${HARDWARE} (report_signature, measurement_allowed)`,
    ],
    [
      'whose evidence was made for another nonce',
      async () => ({ documents: documents(site, undefined, () => 'ab'.repeat(32)) }),
      'the evidence was not made for our nonce (nonce)',
    ],
    [
      'that binds no nonce',
      async () => ({ documents: documents(site, unbind) }),
      'the evidence was not made for our nonce (nonce)',
    ],
    [
      'whose evidence is for another key',
      async () => ({
        documents: documents(await siteFor({ tlsSpkiSha256: otherTls.spkiSha256 })),
      }),
      `${TLS_KEY} (tls_key)`,
    ],
    [
      'that only says it is for this key',
      async () => ({
        documents: documents(await siteFor({ tlsSpkiSha256: otherTls.spkiSha256 }), (envelope) => ({
          ...envelope,
          tls_spki_sha256: tls.spkiSha256,
        })),
      }),
      `${TLS_KEY} (report_data)`,
    ],
    [
      'whose measurement the bundle does not allow',
      async () => {
        const other = await siteFor({})
        return { documents: documents({ ...site, trust: other.trust }) }
      },
      'the trust bundle is not accepted (manifest_header, manifest_signature, measurement_allowed)',
    ],
    [
      'whose evidence is too old',
      async () => ({
        documents: documents(await siteFor({ now: () => Date.now() - 5_000_000 })),
      }),
      'the evidence has no time left (freshness)',
    ],
    [
      'whose bundle another root signed',
      async () => {
        const other = await siteFor({ root: await makeSigningKey({ extractable: false }) })
        return { documents: documents({ ...site, trust: other.trust }) }
      },
      'the trust bundle is not accepted (trust_bundle_header, trust_bundle_signature)',
    ],
    [
      'whose bundle is of another environment',
      async () => ({ mode: 'production' }),
      'the trust bundle is not accepted (trust_bundle_environment)',
    ],
    [
      'on a simulated platform in production',
      async () => ({
        mode: 'production',
        attestation: { ...setting().attestation, environments: ['local'] },
      }),
      `${HARDWARE} (simulated_platform)`,
    ],
    [
      'on a simulated platform that is not this stack’s own',
      async () => ({ deps: { ownSimulated: { arkSpkiSha256: 'ee'.repeat(32) } } }),
      `${HARDWARE} (simulated_platform)`,
    ],
    [
      'on a simulated platform in production that allows one, where the router itself is on a real one',
      async () => ({ ...rehearsal(), deps: { ownSimulated: 'refuse' } }),
      `${HARDWARE} (simulated_platform)`,
    ],
    [
      'on another simulated platform in production that allows one',
      async () => ({ ...rehearsal(), deps: { ownSimulated: { arkSpkiSha256: 'ee'.repeat(32) } } }),
      `${HARDWARE} (simulated_platform)`,
    ],
    [
      'without TLS',
      async () => ({ scheme: 'http' }),
      'the address is not https, so no connection can be bound to evidence',
    ],
    [
      'that does not answer with its evidence',
      async () => ({ documents: () => undefined }),
      'the provider did not answer with its evidence',
    ],
    [
      "under a revocation list of the daemon's own that is none",
      async () => ({ deps: { findRevocationList: async () => Uint8Array.of(1) } }),
      'the hardware evidence does not hold (revocation)',
    ],
    [
      'that answers nonsense',
      async () => ({ documents: () => '{"schema":"service.attestation/v1"}' }),
      'a document cannot be read (attestation envelope)',
    ],
    [
      'that answers without end',
      async () => ({ documents: () => ' '.repeat(300_000) }),
      'a document is larger than any honest one',
    ],
  ])('%s', async (_what, change, reason) => {
    const { provider, link, settled } = await start(await change())
    expect(await settled()).toMatchObject({
      state: 'failed',
      reason,
      verified_at: null,
      expires_at: null,
    })
    const answer = await link.post('nova', PROMPT)
    expect(answer.status).toBe(503)
    expect(answer.headers['x-cmr-egress-error']).toBe('provider_unproven')
    expect(provider.received()).not.toContain('POST')
    expect(provider.received()).not.toContain(PROMPT)
  })
})
