import type { ProvenProviders } from '../proofs.ts'
import { addressKey, hopKey } from './facts.ts'
import type { FactMirror } from './fact-channel.ts'
import type { FromCarrier } from './messages.ts'
import type { Questions } from './questions.ts'

export interface MirroredDeps {
  readonly mirror: Pick<FactMirror, 'facts'>
  readonly questions: Pick<Questions, 'ask'>
  readonly send: (message: FromCarrier) => void
  /** Milliseconds. */
  readonly now: () => number
}

/**
 * The main thread's proofs, for use in another thread. Expired evidence is not used, whatever the main thread has sent
 * last.
 */
export function createMirroredProofs({
  mirror,
  questions,
  send,
  now,
}: MirroredDeps): ProvenProviders {
  const channelOf = (provider: string) => {
    const channel = mirror.facts.channels.get(provider)
    const end = (channel?.evidence.expires_at ?? 0) * 1000
    return now() < end ? channel : undefined
  }
  return {
    list: () => [...mirror.facts.providers].map(([provider, adapter]) => ({ provider, adapter })),
    channel: channelOf,
    unattested: (provider, baseUrl) => mirror.facts.unattested.get(addressKey(provider, baseUrl)),
    async reverify(provider, stale) {
      await questions.ask({ type: 'reverify', provider, stale })
      return channelOf(provider)
    },
    distrust: (provider, evidence) => send({ type: 'distrust', provider, evidence }),
    hop: (provider, evidenceSha256) => mirror.facts.hops.get(hopKey(provider, evidenceSha256)),
  }
}
