import { EGRESS_EVIDENCE_HEADER } from '../../protocol/link.ts'
import { LinkError, type LinkErrorCode } from '../link-error.ts'
import type { ProviderChannel, UnattestedProvider } from '../proofs.ts'
import { ConnectFailure, type ConnectFailureKind } from '../outbound/connect-failure.ts'
import type { ConnectionPool } from './connection-pool.ts'
import { PinMismatch } from './pinned-connection.ts'
import type { Pool } from './pools.ts'
import type { ProviderConnection } from './provider-connection.ts'

const REFUSALS: Readonly<Record<ConnectFailureKind, readonly [LinkErrorCode, string]>> = {
  unreachable: ['provider_unreachable', 'the provider cannot be reached'],
  timeout: ['connect_timeout', 'the provider took too long to connect'],
  exhausted: ['exhausted', 'the daemon can open no connection'],
}

/** The peer of a connection: a provider whose key was proven, or one without attestation. */
export type Channel = ProviderChannel | UnattestedProvider

/** A connection on which nothing has been sent for this call yet. */
export interface OpenConnection<To extends Channel = Channel> {
  readonly connection: ProviderConnection
  /** The pool that the connection must be released to. */
  readonly pool: ConnectionPool
  /** The path of the provider's `base_url`. */
  readonly basePath: string
  readonly channel: To
}

/**
 * Takes a connection from a pool.
 * @throws LinkError `connect_timeout`, `provider_unreachable` or `exhausted` when none was established
 * @throws PinMismatch when the peer holds another key than the one that the evidence binds
 */
export async function takeConnection<To extends Channel>(
  { connections, basePath }: Pool,
  channel: To,
): Promise<OpenConnection<To>> {
  try {
    return { connection: await connections.take(), pool: connections, basePath, channel }
  } catch (error) {
    if (error instanceof PinMismatch) throw error
    const kind = error instanceof ConnectFailure ? error.kind : 'unreachable'
    throw new LinkError(...REFUSALS[kind], { cause: error })
  }
}

/**
 * The response header that names the evidence that a connection is pinned to; empty for a provider without attestation.
 */
export function evidenceHeader({ channel }: OpenConnection): Readonly<Record<string, string>> {
  const { evidence } = channel
  return evidence === null ? {} : { [EGRESS_EVIDENCE_HEADER]: evidence.evidence_digest }
}
