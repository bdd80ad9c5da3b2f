import { es256JwkSchema, jwkThumbprint } from '../protocol/jwk.ts'
import type { BundleState, KeptBundle } from './options.ts'

/** The state of this process alone: enough against an older bundle while it runs, nothing after. */
export function memoryState(): BundleState {
  const seen = new Map<string, KeptBundle>()
  return {
    read: async (rootJwk) => seen.get(await jwkThumbprint(es256JwkSchema.parse(rootJwk))),
    write: async (bundle) => void seen.set(bundle.root, bundle),
  }
}
