import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import type { DaemonTls } from '../../../src/protocol/boot.ts'
import { canonicalJson } from '../../../src/protocol/canonical-json.ts'
import { readAciReport } from '../../../src/verify/providers/aci/report.ts'
import { createQuoteVerifier } from '../../../src/verify/tdx/quote.ts'
import {
  aciKeyset,
  aciReport,
  VECTOR_KEYSET,
  type AciWorkload,
} from '../../support/synthetic-aci.ts'
import { PROMPT, startAttested, type AttestedWorld } from '../../support/attested-provider.ts'
import { failuresOf, rejudge } from '../../support/rejudge.ts'
import { COMPOSE_HASH, MEASUREMENT } from '../../support/synthetic-dstack.ts'
import { makeSyntheticIntel, type SyntheticIntel } from '../../support/synthetic-intel.ts'
import { answerAsIntel, fetchFrom, type PcsOptions } from '../../support/synthetic-tdx.ts'

let intel: SyntheticIntel
let tls: DaemonTls
let otherTls: DaemonTls
let world: AttestedWorld | undefined

beforeAll(async () => {
  ;[intel, tls, otherTls] = await Promise.all([
    makeSyntheticIntel(Date.now()),
    makeTlsIdentity([], new Date()),
    makeTlsIdentity([], new Date()),
  ])
})
afterEach(async () => {
  await world?.close()
  world = undefined
})

const POLICY = {
  adapter: 'aci',
  allowed_compose_hashes: [COMPOSE_HASH],
  allowed_measurements: [MEASUREMENT],
}

interface Change {
  readonly policy?: Record<string, unknown>
  readonly workload?: Partial<AciWorkload>
  readonly rewrite?: (report: string) => string
  readonly pcs?: Partial<PcsOptions>
}

async function start({ policy, workload, rewrite = (same) => same, pcs }: Change = {}) {
  const webFetch = fetchFrom(await answerAsIntel(intel, { now: Date.now(), ...pcs }))
  world = await startAttested({
    attestation: { ...POLICY, ...policy },
    documents: async ({ pathname, searchParams }) => {
      if (pathname !== '/v1/aci/attestation') return undefined
      const report = await aciReport(intel, {
        nonce: searchParams.get('nonce') ?? '',
        keyset: aciKeyset(tls.spkiSha256),
        ...workload,
      })
      return rewrite(JSON.stringify(report))
    },
    tls,
    deps: { verifyQuote: createQuoteVerifier(intel.rootDer), webFetch },
  })
  return world
}

describe("a private gateway's report", () => {
  it('proves it, and is judged again the same way', async () => {
    const { settled, link, proofs } = await start()
    expect(await settled()).toMatchObject({ state: 'verified', reason: null })
    const answer = await link.post('nova', PROMPT)
    expect(answer.status).toBe(200)
    const digest = String(answer.headers['x-cmr-evidence-sha256'])
    expect(proofs.hop('nova', digest)?.block).toMatchObject({
      verified: true,
      verification_mode: 'aci-tdx',
      attestation_strength: 'hardware',
      measurement: MEASUREMENT,
      evidence_summary: { compose_hash: COMPOSE_HASH, nonce_bound: true },
    })
    const options = { verifyQuote: createQuoteVerifier(intel.rootDer) }
    expect(failuresOf(await rejudge(proofs, digest, POLICY, options))).toEqual([])
  })

  it('leaves the workload to an unknown OS where none is pinned', async () => {
    const { settled, proofs, link } = await start({ policy: { allowed_measurements: undefined } })
    await settled()
    const answer = await link.post('nova', PROMPT)
    const digest = String(answer.headers['x-cmr-evidence-sha256'])
    expect(proofs.hop('nova', digest)?.block).toMatchObject({
      verified: false,
      attestation_strength: 'hardware-os-unpinned',
    })
  })

  it('is in force no longer than its keyset', async () => {
    const end = Math.floor(Date.now() / 1000) + 300
    const { settled } = await start({
      workload: { keyset: { ...aciKeyset(tls.spkiSha256), not_after: end } },
    })
    expect(await settled()).toMatchObject({ expires_at: new Date(end * 1000).toISOString() })
  })

  it("is in force no longer than Intel's documents on its machine", async () => {
    const end = Math.floor(Date.now() / 1000 + 300) * 1000
    const { settled } = await start({ pcs: { tcbInfoEnds: end } })
    expect(await settled()).toMatchObject({ expires_at: new Date(end).toISOString() })
  })

  it('has the binding that the published vectors have', async () => {
    const nonce = '000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f'
    const report = await aciReport(intel, {
      nonce,
      keyset: VECTOR_KEYSET,
    })
    const read = await readAciReport(JSON.stringify(report), nonce)
    expect(read.keyset.digest).toBe(
      'sha256:53a5cd44b30dcc51999754c719f2628a041f174ecbf9662a6f8e898a10cd9371',
    )
    expect(Buffer.from(read.reportData).toString('hex')).toBe(
      `df2174d28130852b413646a3786927b93e94c11d770268b65def8bdba45cb49e${'00'.repeat(32)}`,
    )
  })
})

const TLS_KEY = 'the evidence vouches for another TLS key than the connection has'
const HARDWARE = 'the hardware evidence does not hold'
const COMPOSE = 'the workload is not one the operator allows, or is not the one measured'

describe('not a byte of a prompt goes to a private gateway', () => {
  const lying: [string, () => Change, string][] = [
    [
      'whose keyset has another key',
      () => ({ workload: { keyset: aciKeyset(otherTls.spkiSha256) } }),
      TLS_KEY,
    ],
    [
      'whose keyset has the key for another name',
      () => ({ workload: { keyset: aciKeyset(tls.spkiSha256, 'other.example') } }),
      TLS_KEY,
    ],
    [
      'whose keyset has no key',
      () => ({ workload: { keyset: { ...aciKeyset(tls.spkiSha256), tls_public_keys: [] } } }),
      'the evidence binds no TLS key, so nothing ties a connection to it',
    ],
    [
      'whose keyset ended',
      () => ({ workload: { keyset: { ...aciKeyset(tls.spkiSha256), not_after: 1_700_000_000 } } }),
      'the evidence has no time left (keyset)',
    ],
    [
      'whose keyset ends when no date can tell',
      () => ({
        workload: {
          keyset: { ...aciKeyset(tls.spkiSha256), not_after: Number.MAX_SAFE_INTEGER },
        },
      }),
      'a document cannot be read (ACI report)',
    ],
    [
      'that adds a key beside the keyset it is bound to',
      () => ({
        rewrite: (text) =>
          text.replace(
            '"tls_public_keys":[',
            `"tls_public_keys":[{"spki_sha256":"${'ab'.repeat(32)}"},`,
          ),
      }),
      `${HARDWARE} (keyset_digest)`,
    ],
    [
      'that says a keyset and has the quote of another',
      () => ({
        workload: { bound: canonicalJson(aciKeyset(otherTls.spkiSha256)) },
      }),
      `${HARDWARE} (report_data)`,
    ],
    [
      'whose report is for another nonce',
      () => ({ workload: { nonce: 'ab'.repeat(32) } }),
      'the evidence was not made for our nonce',
    ],
    [
      'with another compose file than was measured',
      () => ({ workload: { appCompose: '{}' } }),
      COMPOSE,
    ],
    [
      'with a workload that nobody allowed',
      () => ({ policy: { allowed_compose_hashes: ['00'.repeat(32)] } }),
      COMPOSE,
    ],
    [
      'on another OS',
      () => ({ policy: { allowed_measurements: ['00'.repeat(192)] } }),
      'the measurement is not one the operator allows',
    ],
    [
      'whose event log does not add up',
      () => ({ rewrite: (text) => text.replace('aa'.repeat(20), 'ab'.repeat(20)) }),
      'the event log does not add up to the measured register',
    ],
    [
      'of hardware that has no reader',
      () => ({ rewrite: (text) => text.replace('"tee_type":"tdx"', '"tee_type":"other"') }),
      'a document is of no format this adapter knows',
    ],
    [
      'that sends no report',
      () => ({ rewrite: () => '{}' }),
      'a document cannot be read (ACI report)',
    ],
  ]
  it.each(lying)('%s', async (_what, change, reason) => {
    const { settled, link, provider } = await start(change())
    expect(await settled()).toMatchObject({ state: 'failed', reason })
    const answer = await link.post('nova', PROMPT)
    expect(answer.headers['x-cmr-egress-error']).toBe('provider_unproven')
    expect(provider.received()).not.toContain(PROMPT)
  })
})
