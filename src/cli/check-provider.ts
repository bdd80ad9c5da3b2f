import type { Mode, ProviderConfig } from '../protocol/config.ts'
import { copyBytes } from '../protocol/bytes.ts'
import type { EvidenceDeps } from '../enclave/adapters/adapter.ts'
import { openAdapter } from '../enclave/adapters/table.ts'
import { admitEvidence, type VerifiedEvidence } from '../enclave/adapters/verified-evidence.ts'
import { describeInferenceHop } from '../enclave/proofs/inference-hop.ts'
import { judge } from '../verify/check.ts'
import { EvidenceRefused } from '../verify/evidence-refused.ts'
import { isProven } from '../verify/providers/judged-evidence.ts'
import { providerJudge } from '../verify/providers/provider-judge.ts'
import { InputError } from './verify/input-error.ts'
import type { Outcome } from './verify/print.ts'

/** A provider of a configuration, and its connection parameters. */
export interface CheckedProvider {
  readonly name: string
  readonly provider: ProviderConfig
  readonly apiKey: string | undefined
  readonly mode: Mode
}

/**
 * Fetches and verifies the evidence of one provider as the router does before it sends a prompt. Then verifies it again
 * from the data that would be stored with a receipt, as an auditor does. Serves and stores nothing.
 * @throws InputError when the provider is configured without attestation
 */
export async function checkOnce(
  { name, provider, apiKey, mode }: CheckedProvider,
  deps: EvidenceDeps,
): Promise<Outcome> {
  const { attestation, base_url: address } = provider
  const subject = { baseUrl: address.replace(/\/+$/, ''), apiKey, mode, allowSimulated: false }
  const opened = openAdapter(attestation, subject, deps)
  if (opened === undefined) throw new InputError(`${name} is called without attestation`)
  try {
    const evidence = await admitEvidence(await opened.obtain(), deps.now())
    return await recheck(name, provider, evidence, { mode, ...deps })
  } catch (error) {
    if (!(error instanceof EvidenceRefused)) throw error
    const refused = judge('provider_attested', error.message, '')
    return { ok: false, summary: `NOT PROVEN: ${name}: ${error.message}`, checks: [refused] }
  }
}

async function recheck(
  name: string,
  { attestation }: ProviderConfig,
  evidence: VerifiedEvidence,
  {
    mode,
    ownSimulated,
    verifyQuote,
    verifyProvenance,
    now,
  }: EvidenceDeps & { readonly mode: Mode },
): Promise<Outcome> {
  const { block } = describeInferenceHop(evidence)
  const rejudge = providerJudge(attestation, {
    simulated: mode === 'local' ? ownSimulated : 'refuse',
    environments: mode === 'local' ? ['local'] : [],
    verifyQuote,
    verifyProvenance,
  })
  const { checks } = await rejudge({
    block,
    evidence: new Map([[evidence.evidence_digest, copyBytes(evidence.evidence_raw)]]),
    exchange: { requestDigest: '', responseDigest: '' },
    at: now(),
  })
  const ok = checks.every((check) => check.ok)
  const { verification_mode: path, attestation_strength: strength } = evidence
  const verdict = isProven(evidence) && ok ? 'PROVEN' : 'NOT PROVEN'
  return {
    ok,
    summary: `${verdict}: ${name} by ${path}, ${strength}`,
    checks,
    notes: [...factsOf(evidence)],
  }
}

/** The facts in the evidence, under the names that receipts use, for an operator to compare and pin. */
function* factsOf(evidence: VerifiedEvidence): Generator<string> {
  const { claims, evidence_summary: summary, binding, expires_at: end } = evidence
  yield `measurement: ${claims.measurement ?? 'none'}`
  for (const [name, value] of Object.entries({ ...summary, ...binding })) {
    yield `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`
  }
  yield `in force until: ${new Date(end * 1000).toISOString()}`
}
