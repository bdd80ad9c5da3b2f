import type { RequestOptions } from 'node:https'
import { urlToHttpOptions } from 'node:url'
import type { ProviderChannel } from '../proofs.ts'
import { PinnedAgent } from './pinned-agent.ts'
import { hasPublicName, tlsAddress } from '../outbound/tls-connect.ts'

/** The connections to one provider under one proof. */
export interface Pool {
  readonly agent: PinnedAgent
  /** What each request has in common. */
  readonly target: Pick<RequestOptions, 'protocol' | 'hostname' | 'port'>
  /** The path of the provider's `base_url`, which precedes that of a request. */
  readonly basePath: string
}

/** The connections to each provider. A connection is only used under the proof it was made for. */
export interface Pools {
  /** Undefined where the address does not allow TLS. */
  of(channel: ProviderChannel): Pool | undefined
  /** Closes the idle connections of a provider; running exchanges continue to their end. */
  drop(provider: string): void
  close(): void
}

interface KeyedPool extends Pool {
  readonly key: string
}

function targetOf(baseUrl: string): Pick<Pool, 'target' | 'basePath'> {
  const { protocol, hostname, port, path } = urlToHttpOptions(new URL(`${baseUrl}/`))
  return { target: { protocol, hostname, port }, basePath: (path ?? '').slice(0, -1) }
}

export function createPools(connectMs: () => number): Pools {
  const pools = new Map<string, KeyedPool>()
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
      if (pool?.key === key) return pool
      drop(provider)
      const agent = new PinnedAgent(
        { ...address, webPki: webPki && hasPublicName(address.host), connectMs: connectMs() },
        evidence.binding.tls_spki_sha256,
      )
      const opened = { key, agent, ...targetOf(baseUrl) }
      pools.set(provider, opened)
      return opened
    },
    drop,
    close() {
      for (const provider of pools.keys()) drop(provider)
    },
  }
}
