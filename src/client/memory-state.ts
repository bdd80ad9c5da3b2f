import { es256JwkSchema, jwkThumbprint } from '../protocol/jwk.ts'
import { mayReplace } from './kept-bundle.ts'
import type { BundleState, StoredBundle } from './options.ts'

/** Keeps the state in memory only: it detects an older bundle while the process runs. */
export function memoryState(): BundleState {
  const accepted = new Map<string, StoredBundle>()
  return {
    read: async (rootJwk) => accepted.get(await jwkThumbprint(es256JwkSchema.parse(rootJwk))),
    write: async (bundle) => {
      if (mayReplace(accepted.get(bundle.root), bundle)) accepted.set(bundle.root, bundle)
    },
  }
}
