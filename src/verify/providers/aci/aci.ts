import * as z from 'zod'
import { hex32 } from '../../../protocol/hex-schema.ts'
import { equalBytes } from '../../../protocol/bytes.ts'
import type { PolicyOf } from '../../../protocol/provider-policy.ts'
import { EvidenceRefused } from '../../evidence-refused.ts'
import { storedCollateralSchema } from '../../tdx/stored-collateral.ts'
import { readAciReport, type AciKeyset } from './report.ts'
import { judgeTdxMachine, summarizeMachine } from '../dstack/machine.ts'
import { requireWorkload } from '../dstack/workload.ts'
import type { JudgedEvidence, JudgeOptions } from '../judged-evidence.ts'

/** Everything needed to judge a private gateway, in the form kept with receipts. */
export const aciEvidenceSchema = z.strictObject({
  adapter: z.literal('aci'),
  /** The answer to `/v1/aci/attestation`, as it was served. */
  report: z.string(),
  /** The nonce that this program sent. */
  nonce: hex32,
  /** The TLS key of the peer that served the report, and the host name of the request. */
  tls_spki_sha256: hex32,
  host: z.string(),
  collateral: storedCollateralSchema,
})
export type AciEvidence = z.output<typeof aciEvidenceSchema>

/**
 * Judges a private gateway of the dstack family by its ACI report: the keyset bound to our nonce, the connection's key
 * in it, the machine, REPORT_DATA, and the workload.
 * @throws EvidenceRefused when the evidence does not meet the policy
 * @throws MalformedEvidence when the evidence cannot be read
 */
export async function judgeAci(
  evidence: AciEvidence,
  policy: PolicyOf<'aci'>,
  options: JudgeOptions,
): Promise<JudgedEvidence> {
  const { tls_spki_sha256: tlsSpkiSha256, host } = evidence
  const report = await readAciReport(evidence.report, evidence.nonce)
  requireAciBinding(report.keyset, { tlsSpkiSha256, host, now: options.now })
  const machine = await judgeTdxMachine(report.machine, evidence.collateral, policy, options)
  if (!equalBytes(machine.reportData, report.reportData)) {
    throw new EvidenceRefused('hardware', ['report_data'])
  }
  const { facts, measurement } = machine
  await requireWorkload(report.appCompose, facts, policy)
  const { digest, notAfter, receiptKey } = report.keyset
  return {
    endsAt: Math.min(notAfter, machine.endsAt),
    verification_mode: 'aci-tdx',
    attestation_strength: machine.strength,
    checks: ['nonce', 'keyset', 'tls_key', ...machine.checks, 'report_data', 'compose_hash'],
    binding: { tls_spki_sha256: tlsSpkiSha256 },
    evidence_summary: {
      ...summarizeMachine(machine),
      keyset_digest: digest,
      keyset_expires_at: new Date(notAfter).toISOString(),
      receipt_key: receiptKey ?? null,
    },
    claims: { tee: 'tdx', measurement },
    ...(receiptKey !== undefined && {
      messageKey: { algorithm: 'ed25519', address: receiptKey, keyset: digest } as const,
    }),
  }
}

interface Connection {
  readonly tlsSpkiSha256: string
  readonly host: string
  /** Milliseconds. */
  readonly now: number
}

/**
 * Requires that the keyset is valid and contains the connection's key, for this host name where the entry names one.
 * @throws EvidenceRefused when it is not or does not
 */
export function requireAciBinding(
  { notAfter, tlsKeys }: AciKeyset,
  { tlsSpkiSha256, host, now }: Connection,
): void {
  if (notAfter <= now) throw new EvidenceRefused('expired', ['keyset'])
  if (tlsKeys.length === 0) throw new EvidenceRefused('no_binding')
  const listed = tlsKeys.some(
    ({ spkiSha256, domain }) =>
      spkiSha256 === tlsSpkiSha256 && (domain === undefined || domain.toLowerCase() === host),
  )
  if (!listed) throw new EvidenceRefused('tls_key')
}
