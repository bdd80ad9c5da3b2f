import type { IncomingMessage, ServerResponse } from 'node:http'
import { EGRESS_ERROR_HEADER } from '../protocol/link.ts'
import { LinkError } from './link/link-error.ts'
import type { ProviderProofs } from './proofs.ts'

/** Carries calls to providers over connections that are pinned to attested keys. */
export interface Egress {
  /** Answers the exchange, both ways streamed, or throws `LinkError` before any answer has begun. */
  carry(call: EgressCall): Promise<void>
}

export interface EgressCall {
  readonly provider: string
  /** Path and query below the provider's `base_url`. */
  readonly path: string
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** Takes `<provider>/<path>` apart. Throws `LinkError`. */
export function parseEgressTarget(
  rest: string,
  search: string,
): { provider: string; path: string } {
  const match = /^\/(?<provider>[A-Za-z0-9._-]+)(?<path>\/.*)?$/.exec(rest)
  const provider = match?.groups?.['provider']
  if (provider === undefined) throw new LinkError('invalid_request', 'the path names no provider')
  return { provider, path: `${match?.groups?.['path'] ?? '/'}${search}` }
}

/** Refuses every call: no provider is proven. One without attestation is called by the worker itself. */
export function createRefusingEgress(proofs: ProviderProofs): Egress {
  return {
    async carry({ provider, response }) {
      const proof = proofs.list().find((candidate) => candidate.provider === provider)
      if (proof === undefined) throw new LinkError('not_found', 'no provider of that name')
      if (proof.state === 'unattested') {
        throw new LinkError('invalid_request', 'this provider is called without the daemon')
      }
      response.setHeader(EGRESS_ERROR_HEADER, 'provider_unproven')
      throw new LinkError('provider_unproven', 'the provider has no verified evidence')
    },
  }
}
