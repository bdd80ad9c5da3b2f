import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import type { AdapterName, PolicyOf, ProviderPolicy } from '../../protocol/provider-policy.ts'
import type {
  Adapter,
  AdapterMemory,
  EvidenceSubject,
  EvidenceDeps,
  ObtainEvidence,
} from './adapter.ts'
import { aciAdapter } from './aci.ts'
import { dstackAdapter } from './dstack.ts'
import { envelopeAdapter } from './envelope.ts'
import { EvidenceRefused } from '../../verify/evidence-refused.ts'
import { tinfoilAdapter } from './tinfoil.ts'

export interface OpenedAdapter {
  readonly webPki: boolean
  readonly obtain: ObtainEvidence
  /** Stops what was started for the adapter. */
  readonly close?: () => void
}

/** Opens the adapter that a policy names for one provider; undefined where it names `none`. */
export type OpenAdapter = (
  attestation: ProviderPolicy,
  subject: Subject,
) => OpenedAdapter | undefined

type Subject = Omit<EvidenceSubject<AdapterName>, 'policy'>
type Open = (
  attestation: ProviderPolicy,
  subject: Subject,
  deps: EvidenceDeps,
  memory?: AdapterMemory,
) => OpenedAdapter | undefined

/** The adapter that the configuration names, opened for one provider; undefined for `none`. */
export const openAdapter: Open = (attestation, subject, deps, memory) => {
  if (attestation.adapter === 'none') return undefined
  return OPENERS[attestation.adapter](attestation, subject, deps, memory)
}

/** Whether a provider under this adapter must show a certificate that browsers would accept, besides the pinned key. */
export function needsPublicCertificate(adapter: AdapterName): boolean {
  return ADAPTERS[adapter].webPki
}

/** All adapters by name. */
const ADAPTERS = {
  aci: aciAdapter,
  envelope: envelopeAdapter,
  tinfoil: tinfoilAdapter,
  dstack: dstackAdapter,
} as const

const OPENERS: Readonly<Record<AdapterName, Open>> = {
  aci: opener('aci', ADAPTERS.aci),
  envelope: opener('envelope', ADAPTERS.envelope),
  tinfoil: opener('tinfoil', ADAPTERS.tinfoil),
  dstack: opener('dstack', ADAPTERS.dstack),
}

function opener<Name extends AdapterName>(name: Name, { webPki, open }: Adapter<Name>): Open {
  const isOwn = (one: ProviderPolicy): one is PolicyOf<Name> => one.adapter === name
  return (policy, subject, deps, memory = {}) => {
    if (!isOwn(policy)) throw new Error('internal error: a policy of another adapter')
    const obtain = open({ ...subject, policy }, deps, memory)
    return { webPki, obtain: () => obtain().catch(refuseMalformed) }
  }
}

/** Turns a document that cannot be parsed into a refusal. Its name is safe to report; its content is not. */
function refuseMalformed(error: unknown): never {
  if (!(error instanceof MalformedEvidence)) throw error
  throw new EvidenceRefused('malformed', [error.document], { cause: error })
}
