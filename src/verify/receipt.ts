import { parseCompactJws } from '../protocol/compact-jws.ts'
import { readDocument } from '../protocol/read-document.ts'
import { receiptClaimsSchema, type ReceiptClaims } from '../protocol/receipt.ts'
import { parseStrictJson } from '../protocol/strict-json.ts'
import { judge, verdict, type Check, type Verdict } from './check.ts'
import { requireNumber } from './clock.ts'
import { headerFault, checkJws } from './jws.ts'
import { findSigningKey } from './key-set.ts'
import type { NewestBundle } from './newest-bundle.ts'
import {
  checkConstraints,
  checkEndpoint,
  checkExchange,
  checkKeyContext,
  checkTime,
  type ExpectedExchange,
} from './receipt-claims.ts'
import { checkProvider, type ProviderOptions, type ProviderStatus } from './receipt-provider.ts'
import {
  checkRouter,
  type RouterHopOptions,
  type RouterHopResult,
  type RouterTrust,
} from './receipt-router.ts'

const DOCUMENT = 'receipt'

/** Routers of earlier versions wrote no `typ`, or the generic one. */
const ACCEPTED_TYPES = ['receipt+jwt', 'JWT', undefined] as const

export interface ReceiptOptions extends Omit<RouterHopOptions, 'trust'>, ProviderOptions {
  /**
   * The router's published key set, as parsed JSON. It is trusted only as far as the router's evidence binds the key.
   */
  readonly jwks: unknown
  /** How to verify the router; `signature_only` verifies nothing about it and can never result in `valid`. */
  readonly router: RouterTrust | 'signature_only'
  readonly expected?: ExpectedExchange
}

/** `signature_only`: every check holds, but nothing was verified about the machine behind the key. */
export type ReceiptOutcome = 'valid' | 'not_valid' | 'signature_only'

/** `ok` is true only for the outcome `valid`. */
export interface ReceiptResult extends Verdict {
  readonly outcome: ReceiptOutcome
  /** What could not be judged, and why. */
  readonly notes: readonly string[]
  /** Whether a simulated platform is part of this receipt's proof, which then proves nothing about any machine. */
  readonly simulated: boolean
  readonly provider: ProviderStatus
  /** Present only where the signature is verified. */
  readonly claims?: ReceiptClaims
  /** The newest known bundle, to be stored. */
  readonly accepted?: NewestBundle['accepted']
}

/**
 * Verifies a receipt ("Receipts" in docs/api.md): the key, the signature, the claims, then the router's attestation
 * from its full evidence, as of the time of issue and with every revocation known now, then the provider's attestation
 * under the caller's policy. No claim is read before the signature is verified.
 * @throws MalformedEvidence when the receipt or the key set cannot be parsed
 */
export async function verifyReceipt(text: string, options: ReceiptOptions): Promise<ReceiptResult> {
  requireNumber('now', options.now)
  const jws = parseCompactJws(text, DOCUMENT)
  const header = headerFault(jws, ACCEPTED_TYPES)
  if (header !== undefined) return failed([judge('receipt_header', header, '')])
  const key = await findSigningKey(options.jwks, jws.header.kid)
  if (typeof key === 'string') return failed([judge('receipt_key_known', key, '')])
  const expectation = { document: 'receipt', typ: ACCEPTED_TYPES, key } as const
  const signature = await checkJws(jws, expectation)
  const known = judge('receipt_key_known', undefined, `${jws.header.kid}`)
  if (!verdict(signature).ok) return failed([known, ...signature])

  const payload = parseStrictJson(jws.payload, DOCUMENT)
  const claims = readDocument(receiptClaimsSchema, payload, DOCUMENT)
  const router = await judgeRouter(claims, options)
  const provider = await checkProvider(claims, options)
  const checks = [
    known,
    ...signature,
    ...checkEndpoint(claims, options.expected?.endpoint),
    ...checkExchange(claims, options.expected ?? {}),
    ...checkConstraints(claims, options.expected?.constraints),
    checkKeyContext(claims, jws.header.kid),
    checkTime(claims, key, router.envelope, options.now),
    ...router.checks,
    ...provider.checks,
  ]
  const outcome = outcomeOf(checks, options)
  return {
    ok: outcome === 'valid',
    outcome,
    checks,
    notes: [...router.notes, ...provider.notes],
    simulated: router.simulated || provider.simulated,
    provider: provider.standing,
    claims,
    accepted: router.newest?.accepted,
  }
}

function outcomeOf(checks: readonly Check[], { router }: ReceiptOptions): ReceiptOutcome {
  if (!verdict(checks).ok) return 'not_valid'
  return router === 'signature_only' ? 'signature_only' : 'valid'
}

function failed(checks: readonly Check[]): ReceiptResult {
  return {
    ...verdict(checks),
    outcome: 'not_valid',
    notes: ['not checked further: the receipt is not signed by a known key'],
    simulated: false,
    provider: 'unattested',
  }
}

type JudgedRouter = Omit<RouterHopResult, 'newest'> & Partial<Pick<RouterHopResult, 'newest'>>

async function judgeRouter(
  claims: ReceiptClaims,
  { router, ...options }: ReceiptOptions,
): Promise<JudgedRouter> {
  if (router !== 'signature_only') return checkRouter(claims, { ...options, trust: router })
  const simulated = claims.router_attestation.attestation_strength === 'simulated'
  const refused = simulated && (options.simulated ?? 'refuse') === 'refuse'
  const fault = refused ? 'a simulated platform, and none is allowed' : undefined
  const check = judge('simulated_platform', fault, 'allowed')
  const note = 'router_attestation: not judged, for no release root was given'
  return {
    checks: simulated ? [{ ...check, name: `router_attestation.${check.name}` }] : [],
    notes: [note],
    simulated,
  }
}
