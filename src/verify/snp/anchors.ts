import type { Product } from './product.ts'

/** A known root: SHA-256 over its SubjectPublicKeyInfo, in hex. */
export interface Anchor {
  readonly product: Product
  readonly spkiSha256: string
}

/**
 * AMD's root keys (ARK). The key is pinned, not the certificate or anything below it, so that AMD can renew its
 * authorities without a new release of this library.
 */
export const AMD_ANCHORS: readonly Anchor[] = [
  {
    product: 'milan',
    spkiSha256: '9f056bee44377e29308cb5ffa895bdfb62d18881fa6bed8d6f075b0204089cb9',
  },
  {
    product: 'genoa',
    spkiSha256: '429a69c9422aa258ee4d8db5fcda9c6470ef15f8cd5a9cebd6cbc7d90b863831',
  },
  {
    product: 'turin',
    spkiSha256: '4f125410563a2ab9a50356f9243f6fe0b6f73de98603f53f90339c70e9d7ad08',
  },
]

/** The common name that shows that a chain is not AMD's. */
export const SIMULATED_ARK_NAME = 'ARK-Simulated'

/** Whether evidence of a simulated platform is accepted: never, from any, or only from the one with this root. */
export type SimulatedPolicy = 'refuse' | 'any' | { readonly arkSpkiSha256: string }
