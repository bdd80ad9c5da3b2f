import { LinkError, type LinkErrorCode } from '../link-error.ts'
import type { ProviderChannel, ProvenProviders } from '../proofs.ts'
import { ConnectFailure, type ConnectFailureKind } from '../outbound/connect-failure.ts'
import type { ConnectionPool } from './connection-pool.ts'
import { PinMismatch, type PinnedConnection } from './pinned-connection.ts'
import type { Pools } from './pools.ts'

const REFUSALS: Readonly<Record<ConnectFailureKind, readonly [LinkErrorCode, string]>> = {
  unreachable: ['provider_unreachable', 'the provider cannot be reached'],
  timeout: ['connect_timeout', 'the provider took too long to connect'],
  exhausted: ['exhausted', 'the daemon can open no connection'],
}

/** A connection with the proven key; nothing has been sent yet. */
export interface OpenConnection {
  readonly connection: PinnedConnection
  /** The pool to give it back to. */
  readonly pool: ConnectionPool
  /** The path of the provider's `base_url`. */
  readonly basePath: string
  readonly channel: ProviderChannel
}

export interface PinnedDeps {
  readonly proofs: Omit<ProvenProviders, 'hop'>
  readonly pools: Pools
}

/**
 * Takes a connection with the proven key. If the peer shows another key, that key must be proven by a new verification;
 * if the peer then shows a third one, the provider counts as unproven.
 * @throws LinkError `provider_unproven`; `connect_timeout`, `provider_unreachable` or `exhausted` when no connection was established
 */
export async function openPinned(
  channel: ProviderChannel,
  { proofs, pools }: PinnedDeps,
): Promise<OpenConnection> {
  const { provider } = channel
  const first = await tryOpen(channel, pools)
  if (first !== undefined) return first
  const renewed = await proofs.reverify(provider, channel.evidence)
  if (renewed === undefined) throw unproven()
  const second = await tryOpen(renewed, pools)
  if (second !== undefined) return second
  proofs.distrust(provider, renewed.evidence)
  throw unproven()
}

export function unproven(): LinkError {
  return new LinkError('provider_unproven', 'the provider has no verified evidence')
}

/** Undefined when the peer holds another key; the pool of the old one is then closed. */
async function tryOpen(
  channel: ProviderChannel,
  pools: Pools,
): Promise<OpenConnection | undefined> {
  const pool = pools.of(channel)
  if (pool === undefined) throw unproven()
  const { connections, basePath } = pool
  try {
    return { connection: await connections.take(), pool: connections, basePath, channel }
  } catch (error) {
    if (error instanceof PinMismatch) {
      pools.drop(channel.provider)
      return undefined
    }
    const kind = error instanceof ConnectFailure ? error.kind : 'unreachable'
    throw new LinkError(...REFUSALS[kind], { cause: error })
  }
}
