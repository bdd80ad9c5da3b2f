import { MalformedEvidence } from '../protocol/malformed-evidence.ts'
import { readBounded } from '../protocol/read-bounded.ts'
import { readDocument } from '../protocol/read-document.ts'
import { parseStrictJson } from '../protocol/strict-json.ts'
import { publishedTrustBundleSchema, type LogProofs } from '../protocol/trust-bundle.ts'
import { judge, verdict, type Verdict } from './check.ts'

/** A bundle takes a few kilobytes; a much larger one would be an attack on the reader's memory. */
const MAX_BUNDLE_BYTES = 1_048_576

export interface FetchedTrustBundle extends Verdict {
  /** The compact JWS; only where the check holds. */
  readonly jws?: string
  /** Proofs that bundle and manifest were logged, where they were published with the bundle. */
  readonly logProofs?: LogProofs | undefined
}

/**
 * Fetches a published trust bundle. Its address is named in unverified evidence, so this fetches only from the pinned
 * origin, without following redirects and with a size limit. Network errors are thrown unchanged.
 * @throws MalformedEvidence when the document does not match its schema
 */
export async function fetchTrustBundle(
  url: string,
  pinnedOrigin: string,
  fetcher: typeof fetch,
): Promise<FetchedTrustBundle> {
  const origin = URL.canParse(url) ? new URL(url).origin : 'no address'
  if (origin !== pinnedOrigin) return refused(`${origin} instead of ${pinnedOrigin}`)
  const response = await fetcher(url, { redirect: 'manual' })
  if (response.status !== 200) {
    await response.body?.cancel()
    const redirected = response.type === 'opaqueredirect' || Math.floor(response.status / 100) === 3
    return refused(redirected ? 'the address redirects' : `the address answers ${response.status}`)
  }
  if (response.body === null) throw new MalformedEvidence('published trust bundle', 'no body')
  const body = await readBounded(response.body, MAX_BUNDLE_BYTES)
  if (body === undefined) return refused(`more than ${MAX_BUNDLE_BYTES} bytes`)
  const document = parseStrictJson(body, 'published trust bundle')
  const { trust_bundle_jws: jws, log_proofs: logProofs } = readDocument(
    publishedTrustBundleSchema,
    document,
    'published trust bundle',
  )
  return { ...verdict([judge('trust_bundle_origin', undefined, url)]), jws, logProofs }
}

function refused(fault: string): FetchedTrustBundle {
  return verdict([judge('trust_bundle_origin', fault, '')])
}
