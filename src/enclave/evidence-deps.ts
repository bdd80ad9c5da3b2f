import { join } from 'node:path'
import type { DaemonBoot } from '../protocol/boot.ts'
import { toHex } from '../protocol/bytes.ts'
import type { SimulatedPolicy } from '../verify/snp/anchors.ts'
import { verifyIntelQuote } from '../verify/tdx/quote.ts'
import type { EvidenceDeps } from './adapters/adapter.ts'
import { createObservedFetch } from './adapters/observed-fetch.ts'
import { verifySigstoreBundle } from './provenance/verify-bundle.ts'
import { certificateDirectory, createCertificateCache } from './snp/certificate-cache.ts'
import { findChain } from './snp/chain-finder.ts'
import { fetchFile } from './snp/fetch-file.ts'
import { createKds, type KdsWaits } from './snp/kds.ts'
import { createRevocationLists } from './snp/revocation-lists.ts'

/**
 * The dependencies for fetching and verifying provider evidence over a real network.
 * @param now milliseconds
 */
export function createEvidenceDeps(
  { stateDir, kdsWaits }: Pick<DaemonBoot, 'stateDir'> & { readonly kdsWaits: KdsWaits },
  ownSimulated: SimulatedPolicy,
  now: () => number,
): EvidenceDeps {
  const files = certificateDirectory(join(stateDir, 'amd-certificates'))
  const kds = createKds(fetchFile, now, kdsWaits)
  const cache = createCertificateCache(kds, files)
  return {
    now,
    newNonce: () => toHex(crypto.getRandomValues(new Uint8Array(32))),
    observedFetch: createObservedFetch(now),
    webFetch: fetch,
    verifyQuote: verifyIntelQuote,
    verifyProvenance: verifySigstoreBundle,
    findSnpChain: (report) => findChain(report, {}, { cache, now }),
    findRevocationList: createRevocationLists({ kds, files, now }),
    ownSimulated,
  }
}
