import { fromUtf8, toBase64 } from '../../protocol/bytes.ts'
import { requireTinfoilBinding, judgeTinfoil } from '../../verify/providers/tinfoil/tinfoil.ts'
import type { TinfoilEvidence } from '../../verify/providers/tinfoil/evidence.ts'
import { readTinfoilDocument } from '../../verify/providers/tinfoil/document.ts'
import type { TinfoilDocument } from '../../verify/providers/tinfoil/evidence.ts'
import { fetchCollateral } from '../../verify/tdx/collateral.ts'
import { judgeOptions, type Adapter, type EvidenceSubject, type EvidenceDeps } from './adapter.ts'
import { pcsOverWeb } from './intel-service.ts'
import { findSnpChain } from './machine-collateral.ts'
import { fetchRecords } from './tinfoil-records.ts'
import { sealEvidence } from './verified-evidence.ts'

/** A document includes collateral; those of machines with eight GPUs are the largest. */
const MAX_DOCUMENT_BYTES = 4_194_304

type Subject = EvidenceSubject<'tinfoil'>

/**
 * A Tinfoil enclave. Fetches the document for our nonce, checks that it binds the connection's key, fetches missing
 * collateral from the vendor, and judges all of it.
 */
export const tinfoilAdapter: Adapter<'tinfoil'> = {
  webPki: true,
  open: (subject, deps) => async () => {
    const nonce = deps.newNonce()
    const { body, tlsSpkiSha256 } = await fetchDocument(subject, deps, nonce)
    const document = await readTinfoilDocument(body, nonce)
    requireTinfoilBinding(document, tlsSpkiSha256, subject.policy)
    const evidence: TinfoilEvidence = {
      adapter: 'tinfoil',
      document: fromUtf8(body),
      nonce,
      tls_spki_sha256: tlsSpkiSha256,
      fetched: {
        ...(await FETCHERS[document.platform](document, deps)),
        ...(await fetchRecords(document, subject.policy, deps)),
      },
    }
    const options = judgeOptions(subject, deps)
    const judged = await judgeTinfoil(evidence, subject.policy, options)
    return sealEvidence(judged, JSON.stringify(evidence), {
      now: options.now,
      maxAgeSeconds: subject.policy.max_age_seconds,
    })
  },
}

function fetchDocument({ baseUrl }: Subject, { observedFetch }: EvidenceDeps, nonce: string) {
  const url = new URL(`/.well-known/tinfoil-attestation?nonce=${nonce}`, baseUrl).href
  return observedFetch({ url, maxBytes: MAX_DOCUMENT_BYTES, webPki: tinfoilAdapter.webPki })
}

type Fetched = TinfoilEvidence['fetched']
type FetchMissing = (document: TinfoilDocument, deps: EvidenceDeps) => Promise<Fetched>

const FETCHERS: Readonly<Record<TinfoilDocument['platform'], FetchMissing>> = {
  async snp({ evidence, collateral }, deps) {
    const { snpChainPem } = collateral
    const chain = snpChainPem ?? (await findSnpChain(evidence, deps))
    // AMD's newest list, even where the document contains one.
    const crl = await deps.findRevocationList(chain)
    return {
      ...(snpChainPem === undefined ? { snp_chain_pem: chain } : {}),
      ...(crl === undefined ? {} : { snp_crl_base64: toBase64(crl) }),
    }
  },
  async tdx({ evidence, collateral }, { webFetch }) {
    if (collateral.pcs !== undefined) return {}
    return { tdx_collateral: await fetchCollateral(evidence, pcsOverWeb(webFetch)) }
  },
}
