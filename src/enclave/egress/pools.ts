import type { ProviderChannel } from '../proofs.ts'
import { hasPublicName, tlsAddress } from '../outbound/tls-connect.ts'
import { ConnectionPool } from './connection-pool.ts'

/** The connections to one provider under one proof. */
export interface Pool {
  readonly connections: ConnectionPool
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

/** What a pool was opened for. */
interface Opened extends Pool {
  readonly baseUrl: string
  readonly webPki: boolean
  readonly evidenceDigest: string
  readonly connectMs: number
}

/** @param now ms */
export function createPools(connectMs: () => number, now: () => number): Pools {
  const pools = new Map<string, Opened>()
  const drop = (provider: string) => {
    pools.get(provider)?.connections.retire()
    pools.delete(provider)
  }
  return {
    of(channel) {
      const known = pools.get(channel.provider)
      if (known !== undefined && isFor(known, channel, connectMs())) return known
      const opened = open(channel, connectMs(), now)
      if (opened === undefined) return undefined
      drop(channel.provider)
      pools.set(channel.provider, opened)
      return opened
    },
    drop,
    close() {
      for (const provider of pools.keys()) drop(provider)
    },
  }
}

function isFor(pool: Opened, { baseUrl, webPki, evidence }: ProviderChannel, connectMs: number) {
  return (
    pool.evidenceDigest === evidence.evidence_digest &&
    pool.baseUrl === baseUrl &&
    pool.webPki === webPki &&
    pool.connectMs === connectMs
  )
}

function open(channel: ProviderChannel, connectMs: number, now: () => number): Opened | undefined {
  const { baseUrl, webPki, evidence } = channel
  const address = tlsAddress(baseUrl)
  if (address === undefined) return undefined
  const { origin, pathname, search } = new URL(`${baseUrl}/`)
  const connections = new ConnectionPool({
    origin,
    tls: { ...address, webPki: webPki && hasPublicName(address.host), connectMs, now },
    spkiSha256: evidence.binding.tls_spki_sha256,
  })
  const basePath = `${pathname}${search}`.slice(0, -1)
  const { evidence_digest: evidenceDigest } = evidence
  return { connections, basePath, baseUrl, webPki, evidenceDigest, connectMs }
}
