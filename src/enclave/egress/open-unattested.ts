import type { UnattestedProvider } from '../proofs.ts'
import { takeConnection, type OpenConnection } from './open-connection.ts'
import type { Pools } from './pools.ts'

/**
 * Takes a connection to a provider without attestation.
 * @throws LinkError `connect_timeout`, `provider_unreachable` or `exhausted` when none was established
 */
export function openUnattested(
  provider: UnattestedProvider,
  { pools }: { readonly pools: Pick<Pools, 'unattested'> },
): Promise<OpenConnection<UnattestedProvider>> {
  return takeConnection(pools.unattested(provider), provider)
}
