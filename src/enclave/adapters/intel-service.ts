import { EvidenceRefused } from '../../verify/evidence-refused.ts'
import type { PcsSource } from '../../verify/tdx/collateral.ts'
import { requestService } from './request-service.ts'

/** A chip authority's revocation list is the largest of the documents, at most some 100 KiB. */
const MAX_BYTES = 1_048_576

/** Fetches collateral from Intel's service. */
export function pcsOverWeb(webFetch: typeof fetch): PcsSource {
  return async (url) => {
    const { status, headers, body } = await requestService(webFetch, url, MAX_BYTES)
    if (status !== 200) throw new EvidenceRefused('service_unreachable')
    return { body, header: (name) => headers.get(name) ?? undefined }
  }
}
