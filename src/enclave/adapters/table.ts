import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import type { AdapterName, PolicyOf, ProviderPolicy } from '../../protocol/provider-policy.ts'
import type { Adapter, EvidenceSubject, EvidenceDeps, ObtainEvidence } from './adapter.ts'
import { dstackAdapter } from './dstack.ts'
import { envelopeAdapter } from './envelope.ts'
import { EvidenceRefused } from '../../verify/evidence-refused.ts'
import { tinfoilAdapter } from './tinfoil.ts'

interface OpenedAdapter {
  readonly webPki: boolean
  readonly obtain: ObtainEvidence
}

type Subject = Omit<EvidenceSubject<AdapterName>, 'policy'>
type Open = (
  attestation: ProviderPolicy,
  subject: Subject,
  deps: EvidenceDeps,
) => OpenedAdapter | undefined

/** The adapter that the configuration names, opened for one provider; undefined where it names `none`. */
export const openAdapter: Open = (attestation, subject, deps) => {
  if (attestation.adapter === 'none') return undefined
  return OPENERS[attestation.adapter](attestation, subject, deps)
}

/** The one list of adapters. */
const OPENERS: Readonly<Record<AdapterName, Open>> = {
  envelope: opener('envelope', envelopeAdapter),
  tinfoil: opener('tinfoil', tinfoilAdapter),
  dstack: opener('dstack', dstackAdapter),
}

function opener<Name extends AdapterName>(name: Name, { webPki, open }: Adapter<Name>): Open {
  const isOwn = (one: ProviderPolicy): one is PolicyOf<Name> => one.adapter === name
  return (policy, subject, deps) => {
    if (!isOwn(policy)) throw new Error('internal error: a policy of another adapter')
    const obtain = open({ ...subject, policy }, deps)
    return { webPki, obtain: () => obtain().catch(refuseMalformed) }
  }
}

/** A document that cannot be read is a refusal too; its name is ours, what it says is not. */
function refuseMalformed(error: unknown): never {
  if (!(error instanceof MalformedEvidence)) throw error
  throw new EvidenceRefused('malformed', [error.document], { cause: error })
}
