import type { z } from 'zod'
import type { Bytes } from '../../protocol/bytes.ts'
import { readDocument } from '../../protocol/read-document.ts'
import type { AdapterName, PolicyOf, ProviderPolicy } from '../../protocol/provider-policy.ts'
import type { AttestationBlock } from '../../protocol/receipt.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import { aciEvidenceSchema, judgeAci } from './aci/aci.ts'
import { dstackEvidenceSchema, judgeDstack } from './dstack/dstack.ts'
import { judgeRecordedEnvelope, type LaterRevocations } from './envelope.ts'
import type { JudgedEvidence, JudgeOptions } from './judged-evidence.ts'
import { judgeTinfoil } from './tinfoil/tinfoil.ts'
import { tinfoilEvidenceSchema } from './tinfoil/evidence.ts'

/** Evidence of a provider as stored with a receipt: the bytes, and the block that names them. */
export interface RecordedEvidence {
  readonly raw: Bytes
  readonly block: AttestationBlock
}

export interface RecordedOptions extends JudgeOptions, LaterRevocations {
  /** Environments of trust bundles to accept besides those of the policy. */
  readonly environments?: readonly string[]
}

/**
 * Judges recorded evidence under a policy, with the router's own code and without network access.
 * @throws EvidenceRefused when a check fails or the policy is not met; `unknown_format` when it is of another kind
 * @throws MalformedEvidence when the evidence cannot be parsed
 */
export async function judgeRecorded(
  recorded: RecordedEvidence,
  policy: ProviderPolicy,
  options: RecordedOptions,
): Promise<JudgedEvidence> {
  if (policy.adapter === 'none') throw new EvidenceRefused('unknown_format')
  return JUDGES[policy.adapter](recorded, policy, options)
}

type JudgeOne = (
  recorded: RecordedEvidence,
  policy: ProviderPolicy,
  options: RecordedOptions,
) => Promise<JudgedEvidence>

const JUDGES: Readonly<Record<AdapterName, JudgeOne>> = {
  envelope: of('envelope', judgeRecordedEnvelope),
  tinfoil: of('tinfoil', ({ raw }, policy, options) =>
    judgeTinfoil(readEvidence(tinfoilEvidenceSchema, raw), policy, options),
  ),
  aci: of('aci', ({ raw }, policy, options) =>
    judgeAci(readEvidence(aciEvidenceSchema, raw), policy, options),
  ),
  dstack: of('dstack', ({ raw }, policy, options) =>
    judgeDstack(readEvidence(dstackEvidenceSchema, raw), policy, options),
  ),
}

function of<Name extends AdapterName>(
  name: Name,
  judge: (
    recorded: RecordedEvidence,
    policy: PolicyOf<Name>,
    options: RecordedOptions,
  ) => Promise<JudgedEvidence>,
): JudgeOne {
  const isOwn = (one: ProviderPolicy): one is PolicyOf<Name> => one.adapter === name
  return async (recorded, policy, options) => {
    const { verification_mode: mode } = recorded.block
    if (!isOwn(policy) || !MODES[name].test(mode)) throw new EvidenceRefused('unknown_format')
    return judge(recorded, policy, options)
  }
}

/** The verification modes of each adapter. */
const MODES: Readonly<Record<AdapterName, RegExp>> = {
  envelope: /^snp-envelope$/,
  tinfoil: /^tinfoil-/,
  aci: /^aci-/,
  dstack: /^dstack-/,
}

function readEvidence<Evidence>(schema: z.ZodType<Evidence>, raw: Bytes): Evidence {
  const document = 'recorded evidence'
  return readDocument(schema, parseStrictJson(raw, document), document)
}
