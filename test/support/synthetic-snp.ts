import { pssSigner, issueCertificate } from '../../src/enclave/simulated/certificate.ts'
import type {
  CertificateSigner,
  CertificateTemplate,
} from '../../src/enclave/simulated/certificate.ts'
import {
  chainTemplates,
  describeChip,
  issueSimulatedChain,
  makeVek,
  type SimulatedAuthority,
  type SimulatedChain,
  type SimulatedChip,
} from '../../src/enclave/simulated/chain.ts'
import { issueRevocationList } from '../../src/enclave/simulated/revocation-list.ts'
import {
  signReport,
  signSimulatedReport,
  type ReportFields,
} from '../../src/enclave/simulated/report.ts'
import type { Bytes } from '../../src/protocol/bytes.ts'
import { sha256Hex } from '../../src/protocol/digest.ts'
import { AMD_NAMES } from '../../src/verify/snp/product.ts'
import { STANDALONE_POLICY, type SnpPolicy } from '../../src/verify/snp/policy.ts'
import { runAuthority } from './run-authority.ts'
import { verifySnp, type SnpResult } from '../../src/verify/snp/verify-snp.ts'
import { derToPem } from '../../src/verify/x509/pem.ts'

/** Synthetic SEV-SNP evidence under a root of its own, right in all but what a test overrides. */

/** The moment at which synthetic evidence is made and judged. */
export const NOW = Date.parse('2026-11-20T12:00:00Z')

export const DAY_MS = 86_400_000

const shared: { authority?: Promise<SimulatedAuthority> } = {}

/** The one authority of this test run: RSA-4096 keys are slow to make. */
export async function syntheticAuthority(): Promise<SimulatedAuthority> {
  shared.authority ??= runAuthority()
  return shared.authority
}

/** A chain of a new chip under that authority; its root has the name of AMD's and stands in for it in anchors. */
export async function syntheticChain(
  chip: Partial<SimulatedChip> = {},
  now = NOW,
): Promise<SimulatedChain> {
  return issueSimulatedChain(await syntheticAuthority(), now, {
    arkName: `ARK-${AMD_NAMES[chip.product ?? 'genoa']}`,
    ...chip,
  })
}

export type CertificateChange = Partial<CertificateTemplate> & {
  readonly signer?: CertificateSigner
}

/** The same chain, with single certificates changed before they are signed, or signed by somebody else. */
export async function oddChain(
  changes: Partial<Record<'vek' | 'ask' | 'ark', CertificateChange>>,
  wanted: Partial<SimulatedChip> = {},
  authority?: SimulatedAuthority,
): Promise<SimulatedChain> {
  const keys = { ...(authority ?? (await syntheticAuthority())), vek: await makeVek() }
  const chip = describeChip({ arkName: `ARK-${AMD_NAMES[wanted.product ?? 'genoa']}`, ...wanted })
  const templates = await chainTemplates(chip, keys, NOW)
  const issue = (name: 'vek' | 'ask' | 'ark', issuer: CryptoKeyPair) => {
    const { signer = pssSigner(issuer.privateKey), ...template } = changes[name] ?? {}
    return issueCertificate({ ...templates[name], ...template }, signer)
  }
  const certificates = [
    await issue('vek', keys.ask),
    await issue('ask', keys.ark),
    await issue('ark', keys.ark),
  ]
  return {
    ...chip,
    pem: certificates.map(derToPem).join(''),
    arkSpkiSha256: await sha256Hex(templates.ark.spki),
    crl: await revocationList([], { issuer: chip.arkName, key: keys.ark.privateKey }),
    vek: keys.vek.privateKey,
  }
}

export interface SyntheticCase {
  readonly chip?: Partial<SimulatedChip>
  readonly chain?: SimulatedChain
  readonly fields?: ReportFields
  /** Changes the report before it is signed, where a field of its own does not exist. */
  readonly patch?: (report: Bytes) => void
  readonly policy?: Partial<SnpPolicy>
  readonly pem?: string
  readonly now?: number
  readonly crl?: Bytes
  readonly crlNow?: number
  readonly requireCrl?: boolean
  readonly anchored?: boolean
}

/** A measured guest at privilege level 0. */
export const MEASUREMENT = new Uint8Array(48).fill(0x5a)

/** Makes the report of a case. */
export async function syntheticReport(
  chain: SimulatedChain,
  { fields = {}, patch }: Pick<SyntheticCase, 'fields' | 'patch'> = {},
): Promise<Bytes> {
  const report = await signSimulatedReport(chain, { measurement: MEASUREMENT, ...fields })
  if (patch === undefined) return report
  patch(report)
  return signReport(report, chain.vek)
}

/** Makes evidence as a case describes it and verifies it, its root taken for AMD's. */
export async function verifySynthetic(wanted: SyntheticCase): Promise<SnpResult> {
  const chain = wanted.chain ?? (await syntheticChain(wanted.chip))
  const anchor = { product: chain.product, spkiSha256: chain.arkSpkiSha256 }
  return verifySnp(await syntheticReport(chain, wanted), wanted.pem ?? chain.pem, {
    now: wanted.now ?? NOW,
    policy: { ...STANDALONE_POLICY, allowProvisionalFirmware: false, ...wanted.policy },
    anchors: wanted.anchored === false ? [] : [anchor],
    crl: wanted.crl,
    crlNow: wanted.crlNow,
    requireCrl: wanted.requireCrl,
  })
}

/** The certificates of a PEM chain one by one. */
export function splitPem(pem: string): string[] {
  return pem.split(/(?<=-----END CERTIFICATE-----\n)/)
}

/** A revocation list that names the given serial numbers. */
export async function revocationList(
  serials: readonly number[],
  {
    issuer = 'ARK-Genoa',
    days = 30,
    since = NOW - DAY_MS,
    key,
  }: { issuer?: string; days?: number; since?: number; key?: CryptoKey } = {},
): Promise<Bytes> {
  return issueRevocationList(
    {
      issuer,
      thisUpdate: new Date(since),
      nextUpdate: new Date(NOW + days * DAY_MS),
      serials,
    },
    pssSigner(key ?? (await syntheticAuthority()).ark.privateKey),
  )
}
