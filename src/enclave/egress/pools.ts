import type { ProviderChannel, UnattestedProvider } from '../proofs.ts'
import { peerAddress } from '../../protocol/peer-address.ts'
import { hasPublicName, tlsAddress } from '../outbound/tls-connect.ts'
import { ConnectionPool } from './connection-pool.ts'
import { openPinnedConnection } from './pinned-connection.ts'
import { openUnattestedConnection } from './unattested-connection.ts'

/** The connections to one provider, all of them opened under the same conditions. */
export interface Pool {
  readonly connections: ConnectionPool
  /** The path of the provider's `base_url`, a prefix of each request's path. */
  readonly basePath: string
}

/** The connections to each provider. A pinned connection is used only under the proof that it was opened for. */
export interface Pools {
  /** Undefined where the address does not allow TLS. */
  pinned(channel: ProviderChannel): Pool | undefined
  unattested(provider: UnattestedProvider): Pool
  /** Closes the idle pinned connections of a provider; running exchanges continue to their end. */
  drop(provider: string): void
  close(): void
}

/** A pool and what its connections depend on: the peer and the time limit for opening a connection. */
interface Opened<Channel> {
  readonly pool: Pool
  readonly channel: Channel
  readonly connectMs: number
}

/**
 * @param connectMs time limit for opening a connection, ms
 * @param now ms
 */
export function createPools(connectMs: () => number, now: () => number): Pools {
  const pinned = new PoolTable(isForProof, (channel, ms) => openPinnedPool(channel, ms, now))
  const unattested = new PoolTable(isForAddress, (to, ms) => openUnattestedPool(to, ms, now))
  return {
    pinned: (channel) => pinned.of(channel, connectMs()),
    unattested: (provider) => unattested.of(provider, connectMs()),
    drop: (provider) => pinned.drop(provider),
    close() {
      pinned.close()
      unattested.close()
    },
  }
}

/** One pool for each provider. */
class PoolTable<Channel extends { readonly provider: string }, Made extends Pool | undefined> {
  readonly #pools = new Map<string, Opened<Channel>>()
  readonly #isFor: (opened: Channel, wanted: Channel) => boolean
  readonly #open: (channel: Channel, connectMs: number) => Made

  constructor(
    isFor: (opened: Channel, wanted: Channel) => boolean,
    open: (channel: Channel, connectMs: number) => Made,
  ) {
    this.#isFor = isFor
    this.#open = open
  }

  of(channel: Channel, connectMs: number): Pool | Made {
    const known = this.#pools.get(channel.provider)
    if (known?.connectMs === connectMs && this.#isFor(known.channel, channel)) return known.pool
    const pool = this.#open(channel, connectMs)
    if (pool === undefined) return pool
    this.drop(channel.provider)
    this.#pools.set(channel.provider, { pool, channel, connectMs })
    return pool
  }

  drop(provider: string): void {
    this.#pools.get(provider)?.pool.connections.retire()
    this.#pools.delete(provider)
  }

  close(): void {
    for (const provider of this.#pools.keys()) this.drop(provider)
  }
}

function isForProof(opened: ProviderChannel, wanted: ProviderChannel): boolean {
  return (
    opened.evidence.evidence_digest === wanted.evidence.evidence_digest &&
    opened.baseUrl === wanted.baseUrl &&
    opened.webPki === wanted.webPki
  )
}

function isForAddress(opened: UnattestedProvider, wanted: UnattestedProvider): boolean {
  return opened.baseUrl === wanted.baseUrl && opened.publicOnly === wanted.publicOnly
}

function openPinnedPool(
  { baseUrl, webPki, evidence }: ProviderChannel,
  connectMs: number,
  now: () => number,
): Pool | undefined {
  const address = tlsAddress(baseUrl)
  if (address === undefined) return undefined
  const { origin, basePath } = splitBaseUrl(baseUrl)
  const tls = { ...address, webPki: webPki && hasPublicName(address.host), connectMs, now }
  const { tls_spki_sha256: spkiSha256 } = evidence.binding
  const open = () => openPinnedConnection(origin, tls, spkiSha256)
  return { connections: new ConnectionPool(open), basePath }
}

function openUnattestedPool(
  { baseUrl, publicOnly }: UnattestedProvider,
  connectMs: number,
  now: () => number,
): Pool {
  const { origin, basePath } = splitBaseUrl(baseUrl)
  const target = { origin, ...peerAddress(baseUrl), publicOnly, connectMs, now }
  return { connections: new ConnectionPool(() => openUnattestedConnection(target)), basePath }
}

function splitBaseUrl(baseUrl: string): { origin: string; basePath: string } {
  const { origin, pathname } = new URL(`${baseUrl}/`)
  return { origin, basePath: pathname.slice(0, -1) }
}
