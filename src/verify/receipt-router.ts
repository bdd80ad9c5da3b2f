import { REPORT_DATA_V2 } from '../protocol/envelope.ts'
import type { Es256Jwk } from '../protocol/jwk.ts'
import type { ReceiptClaims } from '../protocol/receipt.ts'
import { judge, prefixed, type Check } from './check.ts'
import { checkEnvelopeHop, type HopResult } from './hop-envelope.ts'
import type { EvidenceBySha256 } from './hop-evidence.ts'
import { findNewestBundle, type NewestBundle } from './newest-bundle.ts'
import type { SnpOptions } from './snp/verify-snp.ts'
import type { AcceptedBundle } from './trust-bundle.ts'

/** The routers that are accepted, and what is known about later revocations. */
export interface RouterTrust {
  /** The router's release root. */
  readonly rootJwk: Es256Jwk
  /** Environments whose bundles are accepted. */
  readonly environments: readonly string[]
  /**
   * Bundles besides the one in the receipt (compact JWS), as new as possible: the newest one's revocations are used.
   */
  readonly bundles?: readonly string[]
  readonly lastAccepted?: AcceptedBundle | undefined
  /**
   * Accepts a receipt whose key, guest or release was revoked only from a time after the receipt's own. The holder of
   * a revoked key can write any time into a receipt, so this must be a deliberate decision.
   */
  readonly acceptBeforeRevocation?: boolean
}

export interface RouterHopOptions extends Omit<SnpOptions, 'policy'> {
  readonly trust: RouterTrust
  readonly evidence: EvidenceBySha256
}

export interface RouterHopResult extends HopResult {
  readonly newest: NewestBundle
}

const NAME = 'router_attestation'

/**
 * Verifies the router's hop completely as of the time of the receipt, and that its envelope binds the key that
 * signed: without that, anyone could have made the signature.
 */
export async function checkRouter(
  claims: ReceiptClaims,
  { trust, ...options }: RouterHopOptions,
): Promise<RouterHopResult> {
  const { rootJwk, environments, bundles = [], lastAccepted, acceptBeforeRevocation } = trust
  const block = claims.router_attestation
  const newest = await findNewestBundle(bundles, rootJwk, {
    now: options.now,
    environments,
    lastAccepted,
    own: block.trust_bundle_jws ?? '',
  })
  const hop = await checkEnvelopeHop(block, {
    ...options,
    now: claims.iat * 1000,
    // The caller's list is current; the envelope's own list is as of the receipt.
    crlNow: options.crl === undefined ? undefined : options.now,
    trust: { rootJwk, environments, newest: newest.bundle, acceptBeforeRevocation },
  })
  const fault = block.verified ? undefined : 'it had not verified when the receipt was signed'
  const verified = judge('hop_verified', fault, `${block.verification_mode}, ${block.tee ?? ''}`)
  return {
    ...hop,
    checks: [
      ...newest.checks,
      ...prefixed(NAME, [verified, ...hop.checks]),
      checkReceiptKey(claims, hop),
      ...checkConfiguration(claims, hop),
    ],
    notes: [...newest.notes, ...hop.notes.map((note) => `${NAME}: ${note}`)],
    newest,
  }
}

/** The router's report must bind the key that signed. */
function checkReceiptKey(claims: ReceiptClaims, { envelope }: HopResult): Check {
  const bound = envelope?.report_data_binding?.receipt_key_thumbprint
  const { kid } = claims.receipt_signature
  const fault = bound === kid ? undefined : `the evidence vouches for ${bound ?? 'no receipt key'}`
  return judge('receipt_key', fault, kid)
}

/**
 * Checks the configuration. Receipts and evidence of earlier versions name none; if one of them names one, the other
 * must name the same.
 */
function checkConfiguration(claims: ReceiptClaims, { envelope }: HopResult): Check[] {
  if (envelope === undefined) return []
  const binding = envelope.report_data_binding
  const bound = binding?.label === REPORT_DATA_V2 ? binding.configuration_sha256 : undefined
  const { configuration_sha256: claimed } = claims
  if (bound === undefined && claimed === undefined) return []
  const fault =
    bound === claimed ? undefined : `the evidence vouches for ${bound ?? 'no configuration'}`
  return [judge('configuration', fault, claimed ?? 'none')]
}
