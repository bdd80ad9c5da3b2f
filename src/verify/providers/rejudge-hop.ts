import type { Bytes } from '../../protocol/bytes.ts'
import { isSameJson } from '../../protocol/canonical-json.ts'
import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import type { AttestationBlock } from '../../protocol/receipt.ts'
import { firstFault, judge, type Check } from '../check.ts'
import { PARTIES_DIFFER_MS } from '../clock.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import { findEvidence } from '../hop-evidence.ts'
import type { JudgedHop, JudgeProviderHop, ProviderHop } from '../receipt-provider.ts'
import { isProven, type JudgedEvidence } from './judged-evidence.ts'

/** How one kind of recorded evidence is judged. */
export interface HopJudge {
  /** Maximum age of the evidence, in seconds. */
  readonly maxAgeSeconds: number
  /**
   * Judges the evidence as of `now`, in milliseconds.
   * @throws EvidenceRefused when a check fails or the policy is not met
   * @throws MalformedEvidence when it cannot be parsed
   */
  readonly judgeEvidence: (
    recorded: { readonly raw: Bytes; readonly block: AttestationBlock },
    now: number,
  ) => Promise<JudgedEvidence>
  /** Verifies again a signature over the exchange, where the receipt states that one was verified. */
  readonly checkMessage: (
    block: AttestationBlock,
    judged: JudgedEvidence,
    exchange: ProviderHop['exchange'],
  ) => Promise<Check[]>
}

/** An exchange that began while its evidence was valid may continue for this long after the evidence expired, ms. */
const MAX_EXCHANGE_MS = 3_600_000

/**
 * Judges the provider's hop of receipts again from the named evidence, as of the time when the router verified it. At
 * that time the evidence must have been valid for the exchange. The receipt's statements on the hop must match the
 * result.
 */
export function rejudgeHop({
  maxAgeSeconds,
  judgeEvidence,
  checkMessage,
}: HopJudge): JudgeProviderHop {
  return async (hop) => {
    const { check, bytes: raw } = await findEvidence(hop.block, hop.evidence)
    if (raw === undefined) return refused([check])
    const { verified_at: verifiedAt = 0 } = hop.block
    const now = verifiedAt * 1000
    const ofAge = (endsAt: number) => [check, checkAge(hop, { maxAgeSeconds, endsAt })]
    try {
      const judged = await judgeEvidence({ raw, block: hop.block }, now)
      return await accepted(hop, judged, ofAge(judged.endsAt), checkMessage)
    } catch (error) {
      if (!(error instanceof EvidenceRefused) && !(error instanceof MalformedEvidence)) throw error
      return refused([...ofAge(Infinity), judge('provider_policy', error.message, '')])
    }
  }
}

function refused(checks: readonly Check[]): JudgedHop {
  return { checks, notes: [], simulated: false }
}

const UNPINNED =
  'your policy pins no operating system, so the workload is what an unknown one says it is'

async function accepted(
  { block, exchange }: ProviderHop,
  judged: JudgedEvidence,
  before: readonly Check[],
  checkMessage: HopJudge['checkMessage'],
): Promise<JudgedHop> {
  const { attestation_strength: strength, verification_mode: mode, onRecord = [] } = judged
  const stated = block.attestation_strength
  return {
    checks: [
      ...before,
      judge('provider_policy', isProven(judged) ? undefined : UNPINNED, `${mode}, ${strength}`),
      checkConsistent(block, judged),
      ...(await checkMessage(block, judged, exchange)),
    ],
    notes: [
      ...(strength === stated
        ? []
        : [`the router said ${stated}; under your policy it is ${strength}`]),
      ...onRecord,
    ],
    simulated: strength === 'simulated',
  }
}

interface Limits {
  readonly maxAgeSeconds: number
  /** When the evidence itself expires, in milliseconds since 1970. */
  readonly endsAt: number
}

function checkAge({ block, at }: ProviderHop, { maxAgeSeconds, endsAt }: Limits): Check {
  const life = maxAgeSeconds * 1000
  const verifiedAt = (block.verified_at ?? 0) * 1000
  const fault = firstFault(
    block.verified_at === undefined && 'the receipt does not say when it was verified',
    verifiedAt > at + PARTIES_DIFFER_MS && 'it was verified after the receipt was issued',
    at > verifiedAt + life + MAX_EXCHANGE_MS && 'it was older than the policy allows',
    at > endsAt + MAX_EXCHANGE_MS && `it had ended before, at ${new Date(endsAt).toISOString()}`,
  )
  return judge('hop_age', fault, new Date(verifiedAt).toISOString())
}

/** Claims that depend on the policy, and may differ from the router's. */
const BY_POLICY: ReadonlySet<string> = new Set(['os_pinned'])

/** Claims that a policy may add to the router's. */
const FOUND_BY_POLICY: ReadonlySet<string> = new Set([
  'release',
  'platform_release',
  'models',
  'os_image',
])

function checkConsistent(block: AttestationBlock, judged: JudgedEvidence): Check {
  const { binding, claims, evidence_summary: summary, verification_mode } = judged
  const places = [
    { said: block.evidence_summary, found: { ...summary, ...binding } },
    { said: block, found: { ...claims, verification_mode } },
  ]
  const differing = places.flatMap(({ said, found }) => differingMembers(said ?? {}, found))
  const fault = differing.length > 0 ? `${differing.join(', ')} differ` : undefined
  return judge('hop_consistent', fault, claims.measurement ?? '')
}

function differingMembers(
  said: Readonly<Record<string, unknown>>,
  found: Readonly<Record<string, unknown>>,
): string[] {
  return Object.entries(found)
    .filter(([, value]) => value !== undefined)
    .filter(([name]) => !BY_POLICY.has(name))
    .filter(([name]) => !FOUND_BY_POLICY.has(name) || said[name] !== undefined)
    .filter(([name, value]) => !isSameJson(said[name], value))
    .map(([name]) => name)
}
