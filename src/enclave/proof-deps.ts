import { join } from 'node:path'
import type { DaemonBoot } from '../protocol/boot.ts'
import { toHex } from '../protocol/bytes.ts'
import type { SimulatedPolicy } from '../verify/snp/anchors.ts'
import { verifyIntelQuote } from '../verify/tdx/quote.ts'
import { observedFetch } from './adapters/observed-fetch.ts'
import type { Log } from './log.ts'
import { verifySigstoreBundle } from './provenance/verify-bundle.ts'
import type { ProofDeps } from './proofs/provider-evidence.ts'
import { certificateDirectory, createCertificateCache } from './snp/certificate-cache.ts'
import { findChain } from './snp/chain-finder.ts'
import { fetchFile } from './snp/fetch-file.ts'
import { createKds } from './snp/kds.ts'
import { createRevocationLists } from './snp/revocation-lists.ts'

/** What upstream evidence is fetched and verified with on a real network. `now` in milliseconds. */
export function createProofTools(
  { stateDir }: Pick<DaemonBoot, 'stateDir'>,
  ownSimulated: SimulatedPolicy,
  now: () => number,
  log: Log,
): ProofDeps {
  const files = certificateDirectory(join(stateDir, 'amd-certificates'))
  const kds = createKds(fetchFile, now)
  const cache = createCertificateCache(kds, files)
  return {
    now,
    random: Math.random,
    log,
    newNonce: () => toHex(crypto.getRandomValues(new Uint8Array(32))),
    observedFetch,
    webFetch: fetch,
    verifyQuote: verifyIntelQuote,
    verifyProvenance: verifySigstoreBundle,
    findSnpChain: (report) => findChain(report, {}, { cache, now }),
    findRevocationList: createRevocationLists({ kds, files, now }),
    ownSimulated,
  }
}
