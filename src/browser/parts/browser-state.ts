import * as z from 'zod'
import { es256JwkSchema, jwkThumbprint } from '../../protocol/jwk.ts'
import { keptBundleSchema, mayReplace } from '../../client/kept-bundle.ts'
import type { BundleState, StoredBundle } from '../../client/options.ts'

const storedSchema = keptBundleSchema.extend({ root: z.string() })

const PREFIX = 'cmr-trust-bundle:'

/**
 * The newest trust bundle of each release root, stored in this browser, so that an older one is refused later.
 * Unreadable state counts as absent, because a script that can damage it could delete it as well.
 */
export function browserState(storage: Pick<Storage, 'getItem' | 'setItem'>): BundleState {
  return {
    read: async (rootJwk) =>
      readStored(storage, await jwkThumbprint(es256JwkSchema.parse(rootJwk))),
    write: async (bundle) => {
      if (!mayReplace(readStored(storage, bundle.root), bundle)) return
      storage.setItem(PREFIX + bundle.root, JSON.stringify(bundle))
    },
  }
}

function readStored(storage: Pick<Storage, 'getItem'>, root: string): StoredBundle | undefined {
  const text = storage.getItem(PREFIX + root)
  if (text === null) return undefined
  try {
    return storedSchema.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}
