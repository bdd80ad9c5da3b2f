import { es256JwkSchema, jwkThumbprint } from '../protocol/jwk.ts'
import type { BundleState, StoredBundle } from './options.ts'

/** The state in this process only: it detects an older bundle while the process runs. */
export function memoryState(): BundleState {
  const accepted = new Map<string, StoredBundle>()
  return {
    read: async (rootJwk) => accepted.get(await jwkThumbprint(es256JwkSchema.parse(rootJwk))),
    write: async (bundle) => void accepted.set(bundle.root, bundle),
  }
}
