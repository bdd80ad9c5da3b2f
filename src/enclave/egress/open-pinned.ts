import { request as httpsRequest } from 'node:https'
import type { ClientRequest, OutgoingHttpHeaders } from 'node:http'
import { LinkError } from '../link-error.ts'
import type { ProviderChannel, ProviderProofs } from '../proofs.ts'
import { PinMismatch } from './pinned-agent.ts'
import type { Pools } from './pools.ts'
import { ConnectFailure } from './tls-connect.ts'

/** A request as it is to go out. */
export interface Outgoing {
  readonly method: string
  /** Path and query below the provider's `base_url`. */
  readonly path: string
  readonly headers: OutgoingHttpHeaders
  readonly signal: AbortSignal
}

/** A request that has a connection with the proven key, and of which nothing has been sent. */
export interface OpenRequest {
  readonly sent: ClientRequest
  readonly channel: ProviderChannel
}

export interface PinnedDeps {
  readonly proofs: ProviderProofs
  readonly pools: Pools
}

/**
 * Opens a request over a connection with the proven key. A peer that shows another key is given one chance to prove
 * that one; a third key is not believed, and the provider counts as unproven.
 * @throws LinkError when the call cannot be served
 */
export async function openPinned(
  channel: ProviderChannel,
  outgoing: Outgoing,
  { proofs, pools }: PinnedDeps,
): Promise<OpenRequest> {
  const { provider } = channel
  const first = await tryOpen(channel, outgoing, pools)
  if (first !== undefined) return { sent: first, channel }
  const renewed = await proofs.reverify(provider, channel.evidence)
  if (renewed === undefined) throw unproven()
  const second = await tryOpen(renewed, outgoing, pools)
  if (second !== undefined) return { sent: second, channel: renewed }
  proofs.distrust(provider, renewed.evidence)
  throw unproven()
}

export function unproven(): LinkError {
  return new LinkError('provider_unproven', 'the provider has no verified evidence')
}

/** Undefined when the peer holds another key; the pool of the old one is gone then. */
async function tryOpen(
  channel: ProviderChannel,
  outgoing: Outgoing,
  pools: Pools,
): Promise<ClientRequest | undefined> {
  const agent = pools.of(channel)
  if (agent === undefined) throw unproven()
  try {
    const { path, ...options } = outgoing
    return await onceConnected(httpsRequest(`${channel.baseUrl}${path}`, { ...options, agent }))
  } catch (error) {
    if (error instanceof PinMismatch) {
      pools.drop(channel.provider)
      return undefined
    }
    const timeout = error instanceof ConnectFailure && error.kind === 'timeout'
    throw timeout
      ? new LinkError('connect_timeout', 'the provider took too long to connect', { cause: error })
      : new LinkError('provider_unreachable', 'the provider cannot be reached', { cause: error })
  }
}

function onceConnected(sent: ClientRequest): Promise<ClientRequest> {
  return new Promise((resolve, reject) => {
    // This listener stays: between two users of the request no other one would handle its error.
    sent.on('error', reject)
    sent.once('socket', () => resolve(sent))
  })
}
