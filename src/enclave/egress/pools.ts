import type { ProviderChannel } from '../proofs.ts'
import { PinnedAgent } from './pinned-agent.ts'
import { hasPublicName, tlsAddress } from '../outbound/tls-connect.ts'

/** The connections to each provider. A connection is only used under the proof it was made for. */
export interface Pools {
  /** Undefined where the address does not allow TLS. */
  of(channel: ProviderChannel): PinnedAgent | undefined
  /** Closes the idle connections of a provider; running exchanges continue to their end. */
  drop(provider: string): void
  close(): void
}

interface Pool {
  readonly key: string
  readonly agent: PinnedAgent
}

export function createPools(connectMs: () => number): Pools {
  const pools = new Map<string, Pool>()
  const drop = (provider: string) => {
    pools.get(provider)?.agent.retire()
    pools.delete(provider)
  }
  return {
    of(channel) {
      const { provider, baseUrl, webPki, evidence } = channel
      const address = tlsAddress(baseUrl)
      if (address === undefined) return undefined
      const key = JSON.stringify([baseUrl, webPki, evidence.evidence_digest, connectMs()])
      const pool = pools.get(provider)
      if (pool?.key === key) return pool.agent
      drop(provider)
      const agent = new PinnedAgent(
        { ...address, webPki: webPki && hasPublicName(address.host), connectMs: connectMs() },
        evidence.binding.tls_spki_sha256,
      )
      pools.set(provider, { key, agent })
      return agent
    },
    drop,
    close() {
      for (const provider of pools.keys()) drop(provider)
    },
  }
}
