import { es256JwkSchema, jwkThumbprint } from '../protocol/jwk.ts'
import type { BundleState, StoredBundle } from './options.ts'

/** The state of this process alone: enough against an older bundle while it runs, nothing after. */
export function memoryState(): BundleState {
  const accepted = new Map<string, StoredBundle>()
  return {
    read: async (rootJwk) => accepted.get(await jwkThumbprint(es256JwkSchema.parse(rootJwk))),
    write: async (bundle) => void accepted.set(bundle.root, bundle),
  }
}
