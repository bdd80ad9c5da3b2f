import type { Generation } from '../config/generations.ts'
import { ENVELOPE_MAX_AGE_SECONDS } from '../envelope/build-envelope.ts'
import type { Identity } from '../identity.ts'
import type { ProviderChannel, ProviderProofs } from '../proofs.ts'
import { addressKey, hopKey, SINGLE_ROW, type Facts } from './facts.ts'

/** The parts of the daemon that the facts are read from. */
export interface FactSources {
  readonly generation: () => Generation
  readonly identity: Pick<Identity, 'envelopes' | 'routerHops'>
  readonly proofs: Pick<ProviderProofs, 'list' | 'channel' | 'hops' | 'everUnattested'>
}

/** The current facts. */
export function readFacts({ generation, identity, proofs }: FactSources): Facts {
  const { generation: number, config } = generation()
  const { last } = identity.envelopes
  const providers = proofs.list()
  const service = { generation: number, connectMs: config.service.timeouts.connect_ms }
  return {
    service: new Map([[SINGLE_ROW, service]]),
    envelope: new Map(
      last === undefined
        ? []
        : [
            [
              SINGLE_ROW,
              { sha256: last.sha256, until: last.capturedAt + ENVELOPE_MAX_AGE_SECONDS * 1000 },
            ],
          ],
    ),
    providers: new Map(providers.map(({ provider, adapter }) => [provider, adapter])),
    channels: new Map(
      providers.flatMap(({ provider }) => {
        const channel = proofs.channel(provider)
        return channel === undefined ? [] : [[provider, withoutDocuments(channel)] as const]
      }),
    ),
    unattested: new Map(
      proofs.everUnattested().map((to) => [addressKey(to.provider, to.baseUrl), to]),
    ),
    hops: new Map(
      proofs
        .hops()
        .map(({ provider, evidenceSha256, hop }) => [hopKey(provider, evidenceSha256), hop]),
    ),
    routerHops: new Map(identity.routerHops().map((hop) => [hop.configurationSha256, hop])),
  }
}

/** Leaves out the raw evidence, which is long and which no call needs. */
function withoutDocuments({ evidence, ...reach }: ProviderChannel): ProviderChannel {
  const {
    attestation_strength,
    binding: { tls_spki_sha256 },
    evidence_digest,
    expires_at,
    verified_at,
  } = evidence
  const binding = { tls_spki_sha256 }
  return {
    ...reach,
    evidence: { attestation_strength, binding, evidence_digest, expires_at, verified_at },
  }
}
