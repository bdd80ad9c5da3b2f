import { isIP } from 'node:net'
import { bareBaseUrl } from '../../protocol/base-url.ts'
import type { Mode, ProviderConfig } from '../../protocol/config.ts'
import { isLoopbackHost } from '../../protocol/loopback.ts'
import { peerAddress } from '../../protocol/peer-address.ts'
import type { KnownHop, UnattestedProvider } from '../proofs.ts'
import { UNATTESTED } from './inference-hop.ts'

/** The providers that are, or were under an earlier configuration of this process, called without attestation. */
export class UnattestedProviders {
  /**
   * By name and address. Entries are never removed: a call may begin, and end, after a reload that removed its
   * provider.
   */
  readonly #byName = new Map<string, Map<string, UnattestedProvider>>()

  add(provider: string, config: Pick<ProviderConfig, 'base_url'>, mode: Mode): void {
    const baseUrl = bareBaseUrl(config.base_url)
    const publicOnly = mode === 'production' && isOpenName(peerAddress(baseUrl).host)
    const known = this.#byName.get(provider) ?? new Map<string, UnattestedProvider>()
    known.set(baseUrl, { provider, baseUrl, publicOnly, evidence: null })
    this.#byName.set(provider, known)
  }

  find(provider: string, baseUrl: string): UnattestedProvider | undefined {
    return this.#byName.get(provider)?.get(baseUrl)
  }

  has(provider: string): boolean {
    return this.#byName.has(provider)
  }

  list(): readonly UnattestedProvider[] {
    return [...this.#byName.values()].flatMap((known) => [...known.values()])
  }

  hops(): readonly KnownHop[] {
    return [...this.#byName.keys()].map((provider) => ({
      provider,
      evidenceSha256: null,
      hop: UNATTESTED,
    }))
  }
}

/**
 * Whether a name server decides which addresses the host has. An IP address or `localhost` is exactly what the operator
 * configured.
 */
function isOpenName(host: string): boolean {
  return isIP(host) === 0 && !isLoopbackHost(host)
}
