import { request as httpsRequest } from 'node:https'
import type { ClientRequest, OutgoingHttpHeaders } from 'node:http'
import { LinkError } from '../link-error.ts'
import type { ProviderChannel, ProviderProofs } from '../proofs.ts'
import { PinMismatch } from './pinned-agent.ts'
import type { Pools } from './pools.ts'
import { ConnectFailure } from '../outbound/tls-connect.ts'

/** An outgoing request. */
export interface Outgoing {
  readonly method: string
  /** Path and query below the provider's `base_url`. */
  readonly path: string
  readonly headers: OutgoingHttpHeaders
  readonly signal: AbortSignal
}

/** A request on a connection with the proven key; nothing has been sent yet. */
export interface OpenRequest {
  readonly sent: ClientRequest
  readonly channel: ProviderChannel
}

export interface PinnedDeps {
  readonly proofs: ProviderProofs
  readonly pools: Pools
}

/**
 * Opens a request over a connection with the proven key. If the peer shows another key, that key must be proven by a
 * new verification; if the peer then shows a third one, the provider counts as unproven.
 * @throws LinkError `provider_unproven` or `connect_failed`; the latter when no connection was established
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

/** Undefined when the peer holds another key; the pool of the old one is then closed. */
async function tryOpen(
  channel: ProviderChannel,
  outgoing: Outgoing,
  pools: Pools,
): Promise<ClientRequest | undefined> {
  const pool = pools.of(channel)
  if (pool === undefined) throw unproven()
  const { agent, target, basePath } = pool
  const { path, method, headers, signal } = outgoing
  try {
    signal.throwIfAborted()
    const sent = httpsRequest({ ...target, path: `${basePath}${path}`, method, headers, agent })
    // Node's own handling of the option `signal` costs several times as much.
    const abort = () => void sent.destroy(new Error('the caller has left'))
    signal.addEventListener('abort', abort, { once: true })
    return await onceConnected(sent)
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
    // This listener stays: at times no other one would handle an error of the request.
    sent.on('error', reject)
    sent.once('socket', () => resolve(sent))
  })
}
