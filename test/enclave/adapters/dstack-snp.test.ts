import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import type { SimulatedChain } from '../../../src/enclave/simulated/chain.ts'
import { CaptureError } from '../../../src/enclave/snp/capture-error.ts'
import type { DaemonTls } from '../../../src/protocol/boot.ts'
import { concatBytes, fromHex, toHex } from '../../../src/protocol/bytes.ts'
import { PROMPT, startAttested, type AttestedWorld } from '../../support/attested-provider.ts'
import { failuresOf, rejudge } from '../../support/rejudge.ts'
import { runChain } from '../../support/run-authority.ts'
import {
  MR_CONFIG,
  scaleAttestation,
  snpConfig,
  snpReport,
  SNP_LAUNCH,
} from '../../support/synthetic-dstack-snp.ts'
import { APP_COMPOSE, COMPOSE_HASH } from '../../support/synthetic-dstack.ts'
import { sha256Of } from '../../support/synthetic-intel.ts'

const SIGNER = 'ab'.repeat(32)

let chain: SimulatedChain
let tls: DaemonTls
let world: AttestedWorld | undefined

beforeAll(async () => {
  ;[chain, tls] = await Promise.all([runChain(), makeTlsIdentity([], new Date())])
})
afterEach(async () => {
  await world?.close()
  world = undefined
})

/** A node on this stack's own simulated chip. */
async function start(findSnpChain: () => Promise<string>): Promise<AttestedWorld> {
  const { config, osImageHash } = await snpConfig()
  world = await startAttested({
    attestation: {
      adapter: 'dstack',
      allowed_compose_hashes: [COMPOSE_HASH],
      allowed_os_image_hashes: [osImageHash],
      gpu: 'optional',
    },
    tls,
    documents: async ({ searchParams }) => {
      const nonce = fromHex(searchParams.get('nonce') ?? '')
      const bound = sha256Of(fromHex(SIGNER), fromHex(tls.spkiSha256))
      const report = await snpReport(chain, {
        reportData: concatBytes(bound, nonce),
      })
      return JSON.stringify({
        signing_address: SIGNER,
        signing_algo: 'ed25519',
        attestation: toHex(scaleAttestation({ report, mrConfig: MR_CONFIG, config })),
        info: { tcb_info: { app_compose: APP_COMPOSE } },
      })
    },
    deps: { findSnpChain, ownSimulated: { arkSpkiSha256: chain.arkSpkiSha256 } },
  })
  return world
}

describe('a node of the dstack family on SEV-SNP', () => {
  it("is proven with AMD's certificates for its chip, and again from what a receipt keeps", async () => {
    const { settled, link, proofs } = await start(async () => chain.pem)
    expect(await settled()).toMatchObject({ adapter: 'dstack', state: 'verified', reason: null })
    const answer = await link.post('nova', PROMPT)
    expect(answer.status).toBe(200)
    const digest = String(answer.headers['x-cmr-evidence-sha256'])
    const { osImageHash } = await snpConfig()
    expect(proofs.hop('nova', digest)?.block).toMatchObject({
      verified: true,
      tee: 'sev-snp',
      measurement: SNP_LAUNCH,
      verification_mode: 'dstack-snp',
      attestation_strength: 'simulated',
      evidence_summary: { compose_hash: COMPOSE_HASH, os_image: osImageHash },
    })
    const policy = {
      adapter: 'dstack',
      allowed_compose_hashes: [COMPOSE_HASH],
      allowed_measurements: [SNP_LAUNCH],
      gpu: 'optional',
    }
    const simulated = { arkSpkiSha256: chain.arkSpkiSha256 }
    expect(failuresOf(await rejudge(proofs, digest, policy, { simulated }))).toEqual([])
  })

  it('waits while AMD does not answer', async () => {
    const { settled } = await start(() => Promise.reject(new CaptureError('no_chain')))
    expect(await settled()).toMatchObject({
      state: 'failed',
      reason: 'a service that verification needs did not answer',
    })
  })

  it('does not take an error of its own for a service that does not answer', async () => {
    const { settled } = await start(() => Promise.reject(new TypeError('undefined is no chain')))
    expect(await settled()).toMatchObject({ state: 'failed', reason: 'verification broke down' })
  })
})
