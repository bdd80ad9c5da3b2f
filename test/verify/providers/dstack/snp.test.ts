import { beforeAll, describe, expect, it } from 'vitest'
import type { SimulatedChain } from '../../../../src/enclave/simulated/chain.ts'
import {
  concatBytes,
  fromHex,
  toBase64,
  toHex,
  utf8,
  type Bytes,
} from '../../../../src/protocol/bytes.ts'
import { providerPolicySchema } from '../../../../src/protocol/provider-policy.ts'
import { judgeDstack } from '../../../../src/verify/providers/dstack/dstack.ts'
import { judgeMachine } from '../../../../src/verify/providers/dstack/machine.ts'
import { readVmConfig } from '../../../../src/verify/providers/dstack/vm-config.ts'
import { REPORT_LAYOUT } from '../../../../src/verify/snp/report-layout.ts'
import {
  hostDataOf,
  messagePackAttestation,
  MR_CONFIG,
  scaleAttestation,
  snpConfig,
  snpReport,
  SNP_LAUNCH,
  type Attestation,
  type SnpGuest,
} from '../../../support/synthetic-dstack-snp.ts'
import { APP_COMPOSE, COMPOSE_HASH } from '../../../support/synthetic-dstack.ts'
import { sha256Of } from '../../../support/synthetic-intel.ts'
import { DAY_MS, NOW, revocationList, syntheticChain } from '../../../support/synthetic-snp.ts'

const NONCE = '0e'.repeat(32)
const TLS_KEY = 'a7'.repeat(32)
const SIGNER = 'ab'.repeat(32)
const REPORT_DATA = concatBytes(sha256Of(fromHex(SIGNER), fromHex(TLS_KEY)), fromHex(NONCE))

let chain: SimulatedChain
let crl: Bytes
let config: string
let osImageHash: string

beforeAll(async () => {
  chain = await syntheticChain({
    product: 'genoa',
    tcb: { bootloader: 7, tee: 0, snp: 23, microcode: 84 },
  })
  crl = await revocationList([], { issuer: chain.arkName })
  ;({ config, osImageHash } = await snpConfig())
})

type Json = Record<string, unknown>

interface Change {
  readonly guest?: Partial<SnpGuest>
  /** Of what the chip has signed, and what goes with it. */
  readonly attestation?: (made: Attestation) => Attestation
  readonly encode?: (made: Attestation) => Bytes
  readonly node?: Json
  readonly policy?: Json
  readonly collateral?: Json
}

function dstackPolicy(change: Json = {}) {
  const policy = providerPolicySchema.parse({
    adapter: 'dstack',
    allowed_compose_hashes: [COMPOSE_HASH],
    allowed_os_image_hashes: [osImageHash],
    gpu: 'optional',
    ...change,
  })
  if (policy.adapter !== 'dstack') throw new Error('another adapter')
  return policy
}

const OPTIONS = {
  now: NOW,
  simulated: 'refuse',
  verifyQuote: () => Promise.reject(new Error('no quotes')),
} as const

/** A node's answer, judged as its adapter and an auditor do. */
async function judgeNode(change: Change = {}) {
  const { guest = {}, attestation = (same) => same, encode = scaleAttestation } = change
  const made = {
    report: await snpReport(chain, { reportData: REPORT_DATA, ...guest }),
    mrConfig: guest.mrConfig ?? MR_CONFIG,
    config: guest.config ?? config,
  }
  const report = {
    signing_address: SIGNER,
    signing_algo: 'ed25519',
    intel_quote: '',
    event_log: '',
    attestation: toHex(encode(attestation(made))),
    info: { tcb_info: { app_compose: APP_COMPOSE } },
    ...change.node,
  }
  return judgeDstack(
    {
      adapter: 'dstack',
      report: JSON.stringify(report),
      nonce: NONCE,
      tls_spki_sha256: TLS_KEY,
      gpu: null,
      collateral: { snp_chain_pem: chain.pem, snp_crl_base64: toBase64(crl), ...change.collateral },
    },
    dstackPolicy(change.policy),
    {
      ...OPTIONS,
      anchors: [{ product: 'genoa', spkiSha256: chain.arkSpkiSha256 }],
    },
  )
}

const byMeasurement = {
  allowed_os_image_hashes: undefined,
  allowed_measurements: [SNP_LAUNCH],
}
const MEASUREMENT = 'the measurement is not one the operator allows'
const HARDWARE = 'the hardware evidence does not hold'
const COMPOSE = 'the workload is not one the operator allows, or is not the one measured'

describe('a dstack node on SEV-SNP', () => {
  it.each<[string, Change]>([
    ['in SCALE', {}],
    ['in MessagePack', { encode: messagePackAttestation }],
    ['by its launch digest', { policy: byMeasurement }],
    [
      'without a configuration, by its launch digest',
      { policy: byMeasurement, guest: { config: '' } },
    ],
  ])('is proven: %s', async (_what, change) => {
    expect(await judgeNode(change)).toMatchObject({
      verification_mode: 'dstack-snp',
      attestation_strength: 'hardware',
      binding: { tls_spki_sha256: TLS_KEY },
      claims: { tee: 'sev-snp', measurement: SNP_LAUNCH },
      evidence_summary: {
        product: 'genoa',
        compose_hash: COMPOSE_HASH,
        app_id: 'aa'.repeat(20),
        instance_id: 'bb'.repeat(20),
        host_data: toHex(hostDataOf(MR_CONFIG)),
        os_pinned: true,
        nonce_bound: true,
      },
      messageKey: { algorithm: 'ed25519', address: SIGNER },
      // With AMD's revocation list.
      endsAt: NOW + 30 * DAY_MS,
    })
  })

  it('says which release of the OS was proven, where that is how it is pinned', async () => {
    expect((await judgeNode()).evidence_summary).toMatchObject({ os_image: osImageHash })
    const { evidence_summary: summary } = await judgeNode({ policy: byMeasurement })
    expect(summary).not.toHaveProperty('os_image')
  })

  it('is under an unknown OS where nothing pins one', async () => {
    expect(await judgeNode({ policy: { allowed_os_image_hashes: undefined } })).toMatchObject({
      attestation_strength: 'hardware-os-unpinned',
      evidence_summary: { os_pinned: false },
    })
  })

  it('is refused with any byte of its report changed', async () => {
    for (const [offset, length] of Object.values(REPORT_LAYOUT)) {
      for (const at of [offset, offset + length - 1]) {
        const attestation = (made: Attestation) => {
          const report = made.report.slice()
          report[at] = (report[at] ?? 0) ^ 1
          return { ...made, report }
        }
        await expect(judgeNode({ attestation })).rejects.toMatchObject({
          name: expect.stringMatching(/^(EvidenceRefused|MalformedEvidence)$/),
        })
      }
    }
  })

  it('is refused with any byte of its document changed', async () => {
    for (let at = 0; at < MR_CONFIG.length; at++) {
      const other = MR_CONFIG[at] === '1' ? '2' : '1'
      const mrConfig = MR_CONFIG.slice(0, at) + other + MR_CONFIG.slice(at + 1)
      const attestation = (made: Attestation) => ({ ...made, mrConfig })
      await expect(judgeNode({ attestation })).rejects.toMatchObject({
        code: 'compose_hash',
        message: `${COMPOSE} (host_data)`,
      })
    }
  })

  it.each<[string, Change, string, string]>([
    [
      'HOST_DATA of zeros',
      { guest: { fields: { hostData: new Uint8Array(32) } } },
      'compose_hash',
      `${COMPOSE} (host_data)`,
    ],
    [
      'HOST_DATA of another document',
      { guest: { fields: { hostData: hostDataOf('{}') } } },
      'compose_hash',
      `${COMPOSE} (host_data)`,
    ],
    [
      'HOST_DATA of what is no such document',
      { guest: { mrConfig: '{}' } },
      'compose_hash',
      `${COMPOSE} (host_data)`,
    ],
    [
      'another compose file than was measured',
      { node: { info: { tcb_info: { app_compose: '{}' } } } },
      'compose_hash',
      COMPOSE,
    ],
    [
      'a workload that is not allowed',
      { policy: { allowed_compose_hashes: ['00'.repeat(32)] } },
      'compose_hash',
      COMPOSE,
    ],
    [
      'another launch digest than is allowed',
      { policy: { ...byMeasurement, allowed_measurements: ['00'.repeat(48)] } },
      'measurement',
      MEASUREMENT,
    ],
    [
      'a release that is not allowed',
      { policy: { allowed_os_image_hashes: ['00'.repeat(32)] } },
      'measurement',
      `${MEASUREMENT} (os_image_hash)`,
    ],
    [
      'another launch than that of the release it names',
      { guest: { fields: { measurement: new Uint8Array(48).fill(7) } } },
      'measurement',
      `${MEASUREMENT} (os_image_launch)`,
    ],
    [
      'no configuration that says which release',
      { guest: { config: '{}' } },
      'measurement',
      `${MEASUREMENT} (os_image_files)`,
    ],
    [
      'a nonce that is not ours',
      { guest: { reportData: concatBytes(REPORT_DATA.slice(0, 32), new Uint8Array(32)) } },
      'nonce',
      'the evidence was not made for our nonce',
    ],
    [
      "another connection's key",
      { guest: { reportData: concatBytes(new Uint8Array(32), fromHex(NONCE)) } },
      'tls_key',
      'the evidence vouches for another TLS key than the connection has',
    ],
    [
      'a layout that binds no key',
      { guest: { reportData: concatBytes(fromHex(SIGNER), fromHex(NONCE)) } },
      'no_binding',
      'the evidence binds no TLS key, so nothing ties a connection to it',
    ],
    [
      'a guest that its host can debug',
      { guest: { fields: { policy: 0xb0000n } } },
      'debug',
      'the guest can be debugged by its host (debug_disabled)',
    ],
    [
      'a chip below the published floor',
      { policy: { tcb_floor: { genoa: { bootloader: 7, tee: 0, snp: 24, microcode: 84 } } } },
      'hardware',
      `${HARDWARE} (tcb_floor, launch_tcb_floor)`,
    ],
    [
      'no revocation list',
      { collateral: { snp_crl_base64: undefined } },
      'hardware',
      `${HARDWARE} (revocation)`,
    ],
    [
      'an attestation of another platform',
      { encode: (made) => scaleAttestation(made).with(1, 1) },
      'unknown_format',
      'a document is of no format this adapter knows',
    ],
    [
      'an attestation beyond every honest size',
      { encode: () => new Uint8Array(65_537) },
      'too_large',
      'a document is larger than any honest one',
    ],
  ])('is refused with %s', async (_what, change, code, message) => {
    await expect(judgeNode(change)).rejects.toMatchObject({ code, message })
  })

  it.each<[string, (made: Attestation) => Bytes, string]>([
    ['cut off', (made) => scaleAttestation(made).slice(0, -1), 'it ends too early'],
    [
      'with something behind',
      (made) => concatBytes(scaleAttestation(made), utf8('x')),
      'something follows it',
    ],
    [
      'that states an impossible length',
      () => Uint8Array.of(0, 3, 3, 255, 255, 255, 255),
      'an impossible length',
    ],
    [
      'that states more than it has',
      () => Uint8Array.of(0, 3, 254, 255, 255, 255),
      'it ends too early',
    ],
    [
      'with more certificates than bytes',
      (made) =>
        concatBytes(scaleAttestation(made).slice(0, 1188), Uint8Array.of(254, 255, 255, 255)),
      'it ends too early',
    ],
    ['of text that is none', () => Uint8Array.of(0, 3, 0, 0, 4, 255), 'not UTF-8'],
    ['that is empty', () => new Uint8Array(0), 'neither a quote nor an attestation'],
    [
      'that is no MessagePack',
      () => Uint8Array.of(0xc1),
      'not MessagePack that an attestation is made of',
    ],
    ['of MessagePack that is no map', () => Uint8Array.of(0x01), 'document: Invalid input'],
  ])('cannot be read from an attestation %s', async (_what, encode, reason) => {
    await expect(judgeNode({ encode })).rejects.toMatchObject({
      name: 'MalformedEvidence',
      message: expect.stringContaining(reason),
    })
  })

  it('is not judged by the documents of another platform', async () => {
    const machine = {
      tee: 'tdx',
      quote: new Uint8Array(),
      eventLog: [],
      vmConfig: readVmConfig(undefined),
    } as const
    const judged = judgeMachine(machine, { snp_chain_pem: chain.pem }, dstackPolicy(), OPTIONS)
    await expect(judged).rejects.toThrow('collateral of another platform')
  })
})
