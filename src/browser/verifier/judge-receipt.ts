import type { Bytes } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { es256JwkSchema } from '../../protocol/jwk.ts'
import { staysPrivate } from '../../protocol/loopback.ts'
import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import type { ProviderPolicy } from '../../protocol/provider-policy.ts'
import { readDocument } from '../../protocol/read-document.ts'
import type { ReceiptClaims } from '../../protocol/receipt.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { evidenceReferences, readEvidenceList } from '../../verify/evidence-references.ts'
import { fetchTrustBundle } from '../../verify/fetch-trust-bundle.ts'
import { receiptHeadline } from '../../verify/headline.ts'
import { newestOf } from '../../verify/newest-bundle.ts'
import type { JudgeProviderHop } from '../../verify/receipt-provider.ts'
import type { ExpectedExchange } from '../../verify/receipt-claims.ts'
import type { ProviderStatus } from '../../verify/receipt-provider.ts'
import { readReceiptText } from '../../verify/receipt-text.ts'
import { verifyReceipt } from '../../verify/receipt.ts'
import { responseDigest } from '../../verify/response-digest.ts'
import type { Findings } from '../chain/picture.ts'
import { RouterUnavailable, type RouterReader } from '../parts/router-reader.ts'
import type { Requirements, PageDeps } from './judge-router.ts'

/**
 * The user's data about one answer. Missing data is fetched from the router where possible; bodies that are missing are
 * not compared.
 */
export interface ReceiptInput {
  /** The router's whole answer or the JWS; empty to fetch the receipt from the router by `id`. */
  readonly text: string
  readonly id: string
  readonly apiKey: string
  readonly evidence: readonly Bytes[]
  readonly jwks: unknown
  /** Trust bundles (compact JWS) besides those of the receipt and the router. */
  readonly bundles: readonly string[]
  readonly request: Bytes | undefined
  readonly response: Bytes | undefined
  readonly providerPolicy: ProviderPolicy | undefined
}

export interface ReceiptReport extends Findings {
  readonly ok: boolean
  readonly simulated: boolean
  readonly summary: string
  readonly notes: readonly string[]
  readonly provider: ProviderStatus
  readonly claims?: ReceiptClaims
  /** Which of the two bodies were compared with the receipt. */
  readonly compared: { readonly request: boolean; readonly response: boolean }
}

/**
 * Verifies a receipt with the available evidence.
 * @param router undefined when the user supplied everything
 * @throws RouterUnavailable when the router does not supply what is missing
 */
export async function judgeReceipt(
  input: ReceiptInput,
  router: RouterReader | undefined,
  requirements: Requirements,
  deps: PageDeps,
): Promise<ReceiptReport> {
  const compared = { request: input.request !== undefined, response: input.response !== undefined }
  try {
    return { ...(await judge(input, router, requirements, deps)), compared }
  } catch (error) {
    if (!(error instanceof MalformedEvidence)) throw error
    return {
      ok: false,
      simulated: false,
      summary: `NOT VALID: the ${error.document} cannot be read.`,
      notes: [],
      provider: 'unattested',
      checks: [],
      malformed: [error],
      read: [],
      compared,
    }
  }
}

async function judge(
  input: ReceiptInput,
  router: RouterReader | undefined,
  requirements: Requirements,
  deps: PageDeps,
): Promise<Omit<ReceiptReport, 'compared'>> {
  const isFetched = input.text === ''
  const { id, receipt } = readReceiptText(
    isFetched ? await fetchReceipt(input, router) : input.text,
  )
  const { rootJwk, environments, allowSimulated, requireCrl, crl } = requirements
  const published = router && (await publishedBundle(router))
  const jwks = input.jwks ?? (await fetchKeys(router))
  const evidence = await gatherEvidence(receipt, input, router)
  // Read after the router's answers: the router decides how long they take, and a newer bundle may have been stored
  // meanwhile.
  const lastAccepted = await deps.state.read(rootJwk)
  const bundles = [...input.bundles, published, lastAccepted?.jws].filter(
    (jws) => jws !== undefined,
  )
  const result = await verifyReceipt(receipt, {
    now: deps.now(),
    jwks,
    evidence,
    // The router may have returned another receipt than the requested one.
    expected: await expectations(isFetched ? input.id : id, input),
    router: { rootJwk, environments, bundles, lastAccepted },
    simulated: allowSimulated ? 'any' : 'refuse',
    requireCrl,
    crl,
    ...(deps.anchors === undefined ? {} : { anchors: deps.anchors }),
    judgeProviderHop: await providerJudgeOf(input, bundles, requirements, deps),
  })
  if (result.accepted !== undefined) await deps.state.write(result.accepted)
  const { ok, simulated, checks, notes, provider, claims } = result
  return {
    ok,
    simulated,
    checks,
    malformed: [],
    read: ['receipt'],
    summary: receiptHeadline(result),
    notes,
    provider,
    ...(claims === undefined ? {} : { claims }),
  }
}

async function fetchReceipt(
  { id, apiKey }: ReceiptInput,
  router: RouterReader | undefined,
): Promise<string> {
  if (id === '' || apiKey === '' || router === undefined) {
    throw new RouterUnavailable('Give a receipt, or its id with the API key that may read it.')
  }
  const answer = await router.get(receiptPath(id), authorization(router, apiKey))
  if (answer.status === 410) throw new RouterUnavailable('The receipt is past its retention.')
  if (answer.status !== 200) {
    throw new RouterUnavailable(`The router answers ${answer.status} for this receipt.`)
  }
  return new TextDecoder().decode(answer.body)
}

const receiptPath = (id: string) => `/v1/receipts/${encodeURIComponent(id)}`

/**
 * @throws RouterUnavailable when the connection is plain HTTP, over which the network could read the key; a page opened
 *   from disk can connect that way
 */
function authorization({ base }: RouterReader, apiKey: string): Readonly<Record<string, string>> {
  if (staysPrivate(base)) return { authorization: `Bearer ${apiKey}` }
  throw new RouterUnavailable(
    `The API key is not sent to ${base.origin} in the clear: give an https address, or receipt and evidence as files.`,
  )
}

async function fetchKeys(router: RouterReader | undefined): Promise<unknown> {
  if (router === undefined) {
    throw new RouterUnavailable('Name the router, or bring its key set, to check who signed this.')
  }
  const { status, body } = await router.get('/.well-known/jwks.json')
  if (status !== 200) throw new RouterUnavailable(`The router answers ${status} for its keys.`)
  return parseStrictJson(body, 'JWKS')
}

async function publishedBundle(router: RouterReader): Promise<string | undefined> {
  const path = `${router.base.pathname.replace(/\/$/, '')}/.well-known/trust.json`
  const { jws } = await fetchTrustBundle(
    new URL(path, router.base).href,
    router.base.origin,
    router.fetch,
  )
  return jws
}

/**
 * Collects the evidence of the receipt: the user's files, identified by their digests, and what is missing from the
 * router.
 */
async function gatherEvidence(
  receipt: string,
  { evidence, apiKey }: ReceiptInput,
  router: RouterReader | undefined,
): Promise<ReadonlyMap<string, Bytes>> {
  const found = new Map<string, Bytes>()
  for (const bytes of evidence) {
    found.set(await sha256Hex(bytes), bytes)
    for (const [sha256, piece] of piecesOf(bytes)) found.set(sha256, piece)
  }
  if (router === undefined) return found
  const { id, references } = evidenceReferences(receipt)
  const missing = () => references.filter((sha256) => !found.has(sha256))
  for (const sha256 of missing()) {
    const { status, body } = await router.get(`/attestation/${sha256}`)
    if (status === 200) found.set(sha256, body)
  }
  if (apiKey === '' || missing().length === 0) return found
  const list = await router.get(`${receiptPath(id)}/evidence`, authorization(router, apiKey))
  if (list.status !== 200) return found
  for (const [sha256, piece] of piecesOf(list.body)) {
    if (!found.has(sha256)) found.set(sha256, piece)
  }
  return found
}

/**
 * The pieces of evidence in a file in the router's list format; empty when the file is not such a list and so is a
 * single piece itself.
 */
function piecesOf(bytes: Bytes): ReadonlyMap<string, Bytes> {
  try {
    return readEvidenceList(bytes)
  } catch (error) {
    if (error instanceof MalformedEvidence) return new Map()
    throw error
  }
}

async function expectations(
  id: string | undefined,
  { request, response }: ReceiptInput,
): Promise<ExpectedExchange> {
  return {
    id,
    clientRequestSha256: request && (await sha256Hex(request)),
    clientResponseSha256: response && (await responseDigest(response)),
  }
}

/**
 * The function that verifies the provider's hop, as in `verify receipt`: a provider with a release root is verified
 * under the newest known bundle of that root.
 */
async function providerJudgeOf(
  { providerPolicy: policy }: ReceiptInput,
  bundles: readonly string[],
  { allowSimulated }: Requirements,
  { now, providerJudge, state }: PageDeps,
): Promise<JudgeProviderHop | undefined> {
  if (policy === undefined || providerJudge === undefined) return undefined
  const simulated = allowSimulated ? 'any' : 'refuse'
  const environments = allowSimulated ? ['local'] : []
  if (policy.adapter !== 'envelope') return providerJudge(policy, { simulated, environments })
  const rootJwk = readDocument(es256JwkSchema, policy.root_key, 'release root key')
  const remembered = (await state.read(rootJwk))?.jws
  const newest = await newestOf(
    [...bundles, remembered].filter((jws) => jws !== undefined),
    rootJwk,
    { now: now(), environments: [...policy.environments, ...environments] },
  )
  return providerJudge(policy, { simulated, environments, newest })
}
