import { es256JwkSchema, jwkThumbprint } from '../protocol/jwk.ts'
import type { BundleState, StoredBundle } from './options.ts'

/** The state in this process only: it detects an older bundle while the process runs. */
export function memoryState(): BundleState {
  const accepted = new Map<string, StoredBundle>()
  return {
    read: async (rootJwk) => accepted.get(await jwkThumbprint(es256JwkSchema.parse(rootJwk))),
    write: async (bundle) => {
      // Another client may have stored a newer one meanwhile.
      if ((accepted.get(bundle.root)?.version ?? 0) > bundle.version) return
      accepted.set(bundle.root, bundle)
    },
  }
}
