import type { Bytes } from '../../protocol/bytes.ts'
import { judge, verdict, type Check, type Verdict } from '../check.ts'
import { requireNumber } from '../clock.ts'
import { keyKind } from '../x509/public-key.ts'
import { AMD_ANCHORS, type Anchor, type SimulatedPolicy } from './anchors.ts'
import { checkChain, type RevocationOptions, type VekChain } from './chain.ts'
import { checkChip, checkSubject } from './chip-checks.ts'
import { checkGuest } from './guest-checks.ts'
import { STANDALONE_POLICY, type SnpPolicy } from './policy.ts'
import { readReport, type SnpReport } from './report.ts'
import { checkReportedTcb, checkTcb } from './tcb-checks.ts'

export interface SnpOptions extends RevocationOptions {
  /** Milliseconds since 1970. */
  readonly now: number
  readonly policy?: SnpPolicy
  /** By default AMD's roots. */
  readonly anchors?: readonly Anchor[]
  /** By default simulated platforms are refused. */
  readonly simulated?: SimulatedPolicy
}

export interface SnpResult extends Verdict {
  readonly report: SnpReport
  /** Absent where the certificates do not form a chain. */
  readonly chain?: VekChain
  /** When the first certificate or the revocation list expires, in milliseconds since 1970; absent when `chain` is. */
  readonly endsAt?: number
}

/**
 * Verifies a SEV-SNP report with its certificates: the chain, the signature, the chip, the TCB, and the guest. Every
 * finding about a readable report is a check in the result.
 * @throws MalformedEvidence when report or certificates cannot be parsed
 */
export async function verifySnp(
  reportBytes: Bytes,
  chainPem: string,
  options: SnpOptions,
): Promise<SnpResult> {
  requireNumber('now', options.now)
  if (options.crlNow !== undefined) requireNumber('crlNow', options.crlNow)
  const report = readReport(reportBytes)
  const policy = options.policy ?? STANDALONE_POLICY
  const { checks, chain, claims, endsAt } = await checkChain(chainPem, {
    now: options.now,
    anchors: options.anchors ?? AMD_ANCHORS,
    simulated: options.simulated ?? 'refuse',
    revocation: options,
  })
  const guest = checkGuest(report, policy)
  if (chain === undefined) return { ...verdict([...checks, ...guest]), report }
  const byCertificate = claims && [
    checkSubject(report, claims, policy),
    checkReportedTcb(report, chain.product, claims.tcb),
  ]
  const all = [
    ...checks,
    ...(await checkSignature(report, chain.vek.spki)),
    ...checkChip(report, chain, policy),
    ...(byCertificate ?? []),
    ...checkTcb(report, chain.product, policy),
    ...guest,
  ]
  return { ...verdict(all), report, chain, ...(endsAt !== undefined && { endsAt }) }
}

/**
 * Checks the signature. Makes no check where the key is of another kind: `certificate_keys` has then failed, and
 * nothing can be verified.
 */
async function checkSignature(report: SnpReport, spki: Bytes): Promise<Check[]> {
  if (keyKind(spki) !== 'P-384') return []
  const verified = await verifyP384(report, spki)
  const fault = verified ? undefined : 'the signature does not verify'
  return [judge('report_signature', fault, 'ECDSA P-384 with SHA-384')]
}

async function verifyP384({ signature, signed }: SnpReport, spki: Bytes): Promise<boolean> {
  try {
    const scheme = { name: 'ECDSA', namedCurve: 'P-384' }
    const key = await crypto.subtle.importKey('spki', spki, scheme, false, ['verify'])
    return await crypto.subtle.verify({ name: 'ECDSA', hash: 'SHA-384' }, key, signature, signed)
  } catch {
    return false
  }
}
