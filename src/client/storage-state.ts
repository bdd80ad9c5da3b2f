import { es256JwkSchema, jwkThumbprint } from '../protocol/jwk.ts'
import { ClientError } from './errors.ts'
import { keptBundleSchema, mayReplace } from './kept-bundle.ts'
import type { BundleState, StoredBundle } from './options.ts'

const PREFIX = 'confidential-model-router/trust-bundle/'

/**
 * Keeps the newest bundle of each release root in a storage such as a page's `localStorage`, so that an older one is
 * refused on the next visit, too. Existing state that cannot be read is an error and is not replaced.
 */
export function storageState(storage: Pick<Storage, 'getItem' | 'setItem'>): BundleState {
  return {
    read: async (rootJwk) => {
      const root = await jwkThumbprint(es256JwkSchema.parse(rootJwk))
      const text = storage.getItem(PREFIX + root)
      return text === null ? undefined : { root, ...readKept(text) }
    },
    write: async ({ root, ...kept }) => {
      const text = storage.getItem(PREFIX + root)
      const stored = text === null ? undefined : readKept(text)
      if (mayReplace(stored, kept)) storage.setItem(PREFIX + root, JSON.stringify(kept))
    },
  }
}

function readKept(text: string): Omit<StoredBundle, 'root'> {
  try {
    return keptBundleSchema.parse(JSON.parse(text))
  } catch (cause) {
    const message = 'what is kept of the trust bundle is damaged; look into it before removing it'
    throw new ClientError('bundle_state', message, { cause })
  }
}
