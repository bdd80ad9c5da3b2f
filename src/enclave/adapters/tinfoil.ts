import { fromUtf8, toHex, utf8, type Bytes } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import type { Adapter, EvidenceSubject, EvidenceTools } from './adapter.ts'
import { EvidenceRefused } from './evidence-refused.ts'
import { judgeTinfoilSnp } from './tinfoil-snp.ts'
import { judgeTinfoilTdx } from './tinfoil-tdx.ts'
import { isTinfoilV2, readTinfoilV2 } from './tinfoil-v2.ts'
import { readTinfoilV3 } from './tinfoil-v3.ts'
import type { EvidenceClaims, VerifiedEvidence } from './verified-evidence.ts'

/** Collateral included; documents of machines with eight GPUs are the largest. */
const MAX_DOCUMENT_BYTES = 4_194_304

/** A document of either version, read: what the CPU says, what it must say, and what comes with it. */
export interface TinfoilDocument {
  readonly version: 'v2' | 'v3'
  readonly platform: 'snp' | 'tdx'
  /** The report or the quote. */
  readonly evidence: Bytes
  /** The 64 bytes that REPORT_DATA must be. */
  readonly reportData: Bytes
  readonly tlsSpkiSha256: string
  readonly nonceBound: boolean
  readonly devices: readonly { readonly kind: string; readonly vendor: string }[]
  readonly collateral: TinfoilCollateral
}

/** Vendors' documents that came along; each is verified by its own signatures. */
export interface TinfoilCollateral {
  /** VEK, ASK, ARK in PEM. */
  readonly snpChainPem?: string
  readonly snpRevocationList?: Bytes
  /** Intel's answers by the path and query of their addresses. */
  readonly pcs?: ReadonlyMap<string, { body: Bytes; headers: ReadonlyMap<string, string> }>
}

/** What the CPU's evidence comes to. */
export interface TinfoilVerdict {
  readonly strength: 'hardware' | 'simulated'
  readonly claims: EvidenceClaims
  readonly summary: VerifiedEvidence['evidence_summary']
  /** What was fetched to verify it. */
  readonly fetched: string | null
}

type Subject = EvidenceSubject<'tinfoil'>
const JUDGES = { snp: judgeTinfoilSnp, tdx: judgeTinfoilTdx } as const

/**
 * A Tinfoil enclave: document for our nonce -> parsed and bound -> key of the very connection -> hardware -> operator's
 * measurements. A host that only knows version 2 answers with that; whether it will do, the operator says.
 */
export const tinfoilAdapter: Adapter<'tinfoil'> = {
  webPki: true,
  open: (subject, tools) => async () => {
    const nonce = tools.newNonce()
    const { body, tlsSpkiSha256 } = await fetchDocument(subject, tools, nonce)
    const json = parseStrictJson(body, 'Tinfoil document')
    const document = isTinfoilV2(json)
      ? await readTinfoilV2(json)
      : await readTinfoilV3(json, nonce)
    if (!document.nonceBound && subject.policy.nonce === 'required') {
      throw new EvidenceRefused('nonce')
    }
    if (document.tlsSpkiSha256 !== tlsSpkiSha256) throw new EvidenceRefused('tls_key')
    const verdict = await JUDGES[document.platform](document, subject, tools)
    return describe({ document, verdict, body, nonce, subject, now: tools.now() })
  },
}

function fetchDocument({ baseUrl }: Subject, { observedFetch }: EvidenceTools, nonce: string) {
  const url = new URL(`/.well-known/tinfoil-attestation?nonce=${nonce}`, baseUrl).href
  return observedFetch({ url, maxBytes: MAX_DOCUMENT_BYTES, webPki: tinfoilAdapter.webPki })
}

interface Accepted {
  readonly document: TinfoilDocument
  readonly verdict: TinfoilVerdict
  readonly body: Bytes
  readonly nonce: string
  readonly subject: Subject
  readonly now: number
}

async function describe(accepted: Accepted): Promise<VerifiedEvidence> {
  const { document, verdict, body, nonce, subject, now } = accepted
  const raw = JSON.stringify({
    adapter: 'tinfoil',
    document: fromUtf8(body),
    nonce: document.nonceBound ? nonce : null,
    fetched: verdict.fetched,
  })
  return {
    verified: true,
    verification_mode: `tinfoil-${document.version}-${document.platform}`,
    attestation_strength: verdict.strength,
    binding: { tls_spki_sha256: document.tlsSpkiSha256 },
    verified_at: Math.floor(now / 1000),
    expires_at: Math.floor(now / 1000) + subject.policy.max_age_seconds,
    evidence_digest: await sha256Hex(raw),
    evidence_summary: {
      ...verdict.summary,
      nonce_bound: document.nonceBound,
      report_data: toHex(document.reportData),
      gpu: { devices: document.devices.length, verified: false, source: 'provider_asserted' },
    },
    evidence_raw: utf8(raw),
    claims: verdict.claims,
  }
}
