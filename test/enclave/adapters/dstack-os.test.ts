import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import type { DaemonTls } from '../../../src/protocol/boot.ts'
import { createQuoteVerifier } from '../../../src/verify/tdx/quote.ts'
import { PROMPT, startAttested, type AttestedWorld } from '../../support/attested-provider.ts'
import { failuresOf, rejudge } from '../../support/rejudge.ts'
import { ACPI_EVENTS, tdxConfig, tdxRegisters } from '../../support/synthetic-dstack-tdx.ts'
import { COMPOSE_HASH, dstackReport, type DstackNode } from '../../support/synthetic-dstack.ts'
import { makeSyntheticIntel, type SyntheticIntel } from '../../support/synthetic-intel.ts'
import { answerAsIntel, fetchFrom, register } from '../../support/synthetic-tdx.ts'

const RELEASE = tdxConfig()
const OS = { registers: tdxRegisters(), events: ACPI_EVENTS, vmConfig: RELEASE.vmConfig }

let intel: SyntheticIntel
let tls: DaemonTls
let world: AttestedWorld | undefined

beforeAll(async () => {
  ;[intel, tls] = await Promise.all([
    makeSyntheticIntel(Date.now()),
    makeTlsIdentity([], new Date()),
  ])
})
afterEach(async () => {
  await world?.close()
  world = undefined
})

const POLICY = { adapter: 'dstack', allowed_compose_hashes: [COMPOSE_HASH], gpu: 'optional' }
const verifyQuote = () => createQuoteVerifier(intel.rootDer)

/** A node of this OS, under a policy that pins these releases. */
async function start(os: DstackNode['os'], pinned: readonly string[]) {
  const answers = await answerAsIntel(intel, { now: Date.now() })
  world = await startAttested({
    attestation: { ...POLICY, allowed_os_image_hashes: pinned },
    tls,
    documents: async ({ searchParams }) =>
      JSON.stringify(
        await dstackReport(intel, {
          nonce: searchParams.get('nonce') ?? '',
          tlsSpkiSha256: tls.spkiSha256,
          ...(os && { os }),
        }),
      ),
    deps: { webFetch: fetchFrom(answers), verifyQuote: verifyQuote() },
  })
  return world
}

describe('a dstack provider whose OS is pinned by its release', () => {
  it('is proven, and an auditor with that pin proves it again', async () => {
    const { proofs, link, settled } = await start(OS, [RELEASE.osImageHash])
    expect(await settled()).toMatchObject({ state: 'verified', reason: null })
    const answer = await link.post('nova', PROMPT)
    const digest = String(answer.headers['x-cmr-evidence-sha256'])
    expect(proofs.hop('nova', digest)?.block).toMatchObject({
      verified: true,
      attestation_strength: 'hardware',
      evidence_summary: { os_pinned: true, os_image: RELEASE.osImageHash },
    })
    const judge = (release: string) =>
      rejudge(
        proofs,
        digest,
        { ...POLICY, allowed_os_image_hashes: [release] },
        { verifyQuote: verifyQuote() },
      )
    expect(failuresOf(await judge(RELEASE.osImageHash))).toEqual([])
    expect(failuresOf(await judge('00'.repeat(32)))).toEqual([
      expect.stringContaining('(os_image_hash)'),
    ])
  })

  it.each<[string, DstackNode['os'], string, string]>([
    ['is of another release', OS, '00'.repeat(32), 'os_image_hash'],
    [
      'names a release and runs something else',
      { ...OS, registers: { ...OS.registers, rtMr1: register(1) } },
      RELEASE.osImageHash,
      'rtmr1',
    ],
    ['only says in its log which it is', undefined, 'cc'.repeat(32), 'os_image_files'],
  ])('is refused where it %s', async (_what, os, pinned, check) => {
    const { settled } = await start(os, [pinned])
    expect(await settled()).toMatchObject({
      state: 'failed',
      reason: `the measurement is not one the operator allows (${check})`,
    })
  })
})
