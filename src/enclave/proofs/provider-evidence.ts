import { bareBaseUrl } from '../../protocol/base-url.ts'
import type { ProviderConfig } from '../../protocol/config.ts'
import type { OpenAdapter } from '../adapters/table.ts'
import type { LoadedConfig } from '../config/load-config.ts'
import type { Log } from '../log.ts'
import type { ProviderChannel, ProviderProofs } from '../proofs.ts'
import { UNATTESTED } from './inference-hop.ts'
import { EvidenceRefresher, NO_EVIDENCE } from './evidence-refresher.ts'
import { ProvenHops } from './proven-hops.ts'
import { UnattestedProviders } from './unattested-providers.ts'

export interface ProofDeps {
  readonly openAdapter: OpenAdapter
  /** Milliseconds. */
  readonly now: () => number
  /** From 0 up to 1. */
  readonly random: () => number
  /** Called, synchronously, whenever a proof begins or ceases to hold. */
  readonly changed: () => void
  readonly log: Log
}

/** A provider of the current configuration. */
interface Kept {
  /** Everything that the proof depends on; if it changes, verification starts again. */
  readonly key: string
  readonly adapter: ProviderConfig['attestation']['adapter']
  readonly reach: Omit<ProviderChannel, 'evidence'>
  /** Absent where the provider has no attestation. */
  readonly refresher: EvidenceRefresher | undefined
}

/** Maintains a proof for each provider with an adapter, independently of requests. */
export function createProviderProofs(deps: ProofDeps): ProviderProofs {
  let current = new Map<string, Kept>()
  const hops = new ProvenHops()
  const unattested = new UnattestedProviders()

  const channelOf = ({ reach, refresher }: Kept): ProviderChannel | undefined => {
    const evidence = refresher?.current
    return evidence && { ...reach, evidence }
  }
  return {
    configure(loaded) {
      const next = new Map<string, Kept>()
      for (const [name, provider] of Object.entries(loaded.config.providers)) {
        const key = keyOf(name, provider, loaded)
        const kept = current.get(name)
        next.set(name, kept?.key === key ? kept : start({ name, key, loaded, deps, hops }))
        if (provider.attestation.adapter === 'none') {
          unattested.add(name, provider, loaded.config.service.mode)
        }
      }
      for (const kept of current.values()) {
        if (next.get(kept.reach.provider) !== kept) kept.refresher?.close()
      }
      current = next
      deps.changed()
    },
    close() {
      for (const { refresher } of current.values()) refresher?.close()
    },
    list: () => [...current.values()].map(describe),
    channel(provider) {
      const kept = current.get(provider)
      return kept && channelOf(kept)
    },
    async reverify(provider, stale) {
      const kept = current.get(provider)
      await kept?.refresher?.reverify(stale)
      return kept && channelOf(kept)
    },
    distrust: (provider, evidence) => current.get(provider)?.refresher?.distrust(evidence),
    hop(provider, evidenceSha256) {
      if (evidenceSha256 !== null) return hops.find(provider, evidenceSha256)
      return unattested.has(provider) ? UNATTESTED : undefined
    },
    hops: () => [...hops.list(), ...unattested.hops()],
    unattested: (provider, baseUrl) => unattested.find(provider, baseUrl),
    everUnattested: () => unattested.list(),
    evidence: (sha256) => hops.evidence(sha256),
  }
}

function keyOf(name: string, provider: ProviderConfig, { config, providerApiKeys }: LoadedConfig) {
  const { mode, allow_simulated: allowSimulated } = config.service
  return JSON.stringify([provider, mode, allowSimulated, providerApiKeys[name] ?? null])
}

interface StartInputs {
  readonly name: string
  readonly key: string
  readonly loaded: LoadedConfig
  readonly deps: ProofDeps
  readonly hops: ProvenHops
}

/** Starts to verify at once, in the background. */
function start({ name, key, loaded, deps, hops }: StartInputs): Kept {
  const { config, providerApiKeys } = loaded
  const provider = config.providers[name]
  if (provider === undefined) throw new Error('internal error: a provider without configuration')
  const baseUrl = bareBaseUrl(provider.base_url)
  const apiKey = providerApiKeys[name]
  const opened = deps.openAdapter(provider.attestation, {
    baseUrl,
    apiKey,
    mode: config.service.mode,
    allowSimulated: config.service.allow_simulated,
  })
  const reach = { provider: name, baseUrl, apiKey, webPki: opened?.webPki ?? true }
  const adapter = provider.attestation.adapter
  if (opened === undefined) return { key, adapter, reach, refresher: undefined }
  const { now, random } = deps
  const onVerified = hops.add.bind(hops, name)
  const refresher = new EvidenceRefresher({
    obtain: opened.obtain,
    release: () => opened.close?.(),
    now,
    random,
    onVerified,
    changed: deps.changed,
    log: (event, fields) => deps.log(event, { provider: name, ...fields }),
  })
  void refresher.verify()
  return { key, adapter, reach, refresher }
}

function describe({ reach: { provider }, adapter, refresher }: Kept) {
  const unattested = { ...NO_EVIDENCE, state: 'unattested' as const, reason: null }
  const standing = refresher?.standing ?? unattested
  return { provider, adapter, ...standing }
}
