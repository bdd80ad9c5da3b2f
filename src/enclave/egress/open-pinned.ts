import { LinkError } from '../link-error.ts'
import type { ProviderChannel, ProvenProviders } from '../proofs.ts'
import { takeConnection, type OpenConnection } from './open-connection.ts'
import { PinMismatch } from './pinned-connection.ts'
import type { Pools } from './pools.ts'

export interface PinnedDeps {
  readonly proofs: Omit<ProvenProviders, 'hop'>
  readonly pools: Pools
}

/**
 * Takes a connection to the proven key. If the peer shows another key, the provider is verified again; if the peer then
 * does not show the newly proven key either, the provider counts as unproven.
 * @throws LinkError `provider_unproven`; `connect_timeout`, `provider_unreachable` or `exhausted` when no connection
 *   was established
 */
export async function openPinned(
  channel: ProviderChannel,
  { proofs, pools }: PinnedDeps,
): Promise<OpenConnection<ProviderChannel>> {
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

/** Undefined when the peer holds another key; the pool for the old key is then closed. */
async function tryOpen(
  channel: ProviderChannel,
  pools: Pools,
): Promise<OpenConnection<ProviderChannel> | undefined> {
  const pool = pools.pinned(channel)
  if (pool === undefined) throw unproven()
  try {
    return await takeConnection(pool, channel)
  } catch (error) {
    if (!(error instanceof PinMismatch)) throw error
    pools.drop(channel.provider)
    return undefined
  }
}
