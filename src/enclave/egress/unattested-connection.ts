import { createPublicLookup } from '../outbound/public-lookup.ts'
import { connectTcp } from '../outbound/tcp-connect.ts'
import type { ConnectTime } from '../outbound/established.ts'
import { connectTls } from '../outbound/tls-connect.ts'
import { connectDirect } from './direct-socket.ts'
import { ProviderConnection } from './provider-connection.ts'

/** Where a provider without attestation is reached. */
export interface UnattestedTarget extends ConnectTime {
  /** Scheme, host and port. */
  readonly origin: string
  readonly isTls: boolean
  readonly host: string
  readonly port: number
  /** Whether its name must resolve to a public address. */
  readonly publicOnly: boolean
}

const publicLookup = createPublicLookup()

/**
 * Opens a connection to a provider without attestation: over TLS with a certificate that browsers accept, from version 1.2
 * on, or without TLS where its address says so.
 * @throws ConnectFailure when no connection is established in time
 */
export async function openUnattestedConnection({
  origin,
  isTls,
  publicOnly,
  ...peer
}: UnattestedTarget): Promise<ProviderConnection> {
  const target = { ...peer, ...(publicOnly && { lookup: publicLookup }) }
  const socket = await connectDirect((take) =>
    isTls ? connectTls({ ...target, webPki: true, oldTls: true }, take) : connectTcp(target, take),
  )
  return ProviderConnection.over(origin, socket)
}
