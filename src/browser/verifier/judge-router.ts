import type { Bytes } from '../../protocol/bytes.ts'
import type { Envelope } from '../../protocol/envelope.ts'
import { KEY_CONFIG_PATH } from '../../protocol/ehbp.ts'
import type { Es256Jwk } from '../../protocol/jwk.ts'
import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import type { TrustBundle } from '../../protocol/trust-bundle.ts'
import type { BundleState } from '../../client/options.ts'
import { verdict, type Check } from '../../verify/check.ts'
import { verifyEnvelope, type EnvelopeResult } from '../../verify/envelope.ts'
import { readEnvelope, verifyEnvelopeHardware } from '../../verify/envelope-hardware.ts'
import { fetchTrustBundle } from '../../verify/fetch-trust-bundle.ts'
import { headline } from '../../verify/headline.ts'
import type { Anchor } from '../../verify/snp/anchors.ts'
import type { providerJudge } from '../../verify/providers/provider-judge.ts'
import { policyOfBundle } from '../../verify/snp/policy.ts'
import type { SnpOptions } from '../../verify/snp/verify-snp.ts'
import { readServedHpkeKey } from '../../verify/served-hpke-key.ts'
import { checkLogged } from '../../verify/transparency/check-logged.ts'
import type { LogPolicy } from '../../verify/transparency/log-policy.ts'
import { verifyTrustBundle } from '../../verify/trust-bundle.ts'
import type { Findings } from '../chain/picture.ts'
import { RouterUnavailable, type ReadAnswer, type RouterReader } from '../parts/router-reader.ts'

/** The user's requirements. */
export interface Requirements {
  readonly rootJwk: Es256Jwk
  readonly environments: readonly string[]
  readonly allowSimulated: boolean
  readonly requireCrl: boolean
  /** AMD's current revocation list in DER, where the user supplied one. */
  readonly crl: Bytes | undefined
  readonly logPolicy: LogPolicy | undefined
}

/** What the page needs from the browser. */
export interface PageDeps {
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** 32 fresh random bytes in hex. */
  readonly nonce: () => string
  readonly state: BundleState
  /** Verifies the provider's hop again; without it, the page reports the hop as recorded, and is smaller. */
  readonly providerJudge?: typeof providerJudge
  /** Trust anchors to use instead of AMD's roots. */
  readonly anchors?: readonly Anchor[]
}

export interface RouterReport extends Findings {
  readonly ok: boolean
  readonly simulated: boolean
  /** The verdict in one line. */
  readonly summary: string
  readonly notes: readonly string[]
  readonly nonce: string
  readonly envelope?: Envelope
  readonly bundle?: TrustBundle
  readonly result?: Pick<EnvelopeResult, 'report' | 'chain' | 'manifest'>
}

const PROVEN = 'there is a verified router enclave that runs an accepted release'

export const CONNECTION_NOTE =
  'tls_key: a page cannot see which key its own connection has; compare it with another tool'

/**
 * Verifies a running router with a fresh nonce. A malformed document does not prevent the verification of the others.
 * @throws RouterUnavailable when the router gives no evidence at all
 */
export async function judgeRouter(
  router: RouterReader,
  requirements: Requirements,
  deps: PageDeps,
): Promise<RouterReport> {
  const nonce = deps.nonce()
  const [trust, answer, hpkeKey] = await Promise.all([
    judgeBundle(router, requirements, deps),
    router.get(`/attestation?nonce=${nonce}`),
    router.get(KEY_CONFIG_PATH),
  ])
  if (answer.status !== 200) throw new RouterUnavailable(refusalOf(answer.status))
  const judged = await judgeEnvelope(
    { body: answer.body, hpkeKey, nonce },
    trust,
    requirements,
    deps,
  )
  const logged = judgeLog(judged.envelope, trust, requirements, deps)
  const checks = [...trust.checks, ...judged.checks, ...logged.checks]
  const malformed = [...trust.malformed, ...judged.malformed]
  const ok = malformed.length === 0 && verdict(checks).ok
  const simulated = judged.result?.chain?.simulated === true && requirements.allowSimulated
  return {
    ...judged,
    ok,
    simulated,
    checks,
    malformed,
    summary: summaryOf({ checks, malformed }, simulated),
    notes: [...judged.notes, ...logged.notes, CONNECTION_NOTE],
    nonce,
    ...(trust.bundle === undefined ? {} : { bundle: trust.bundle }),
  }
}

function refusalOf(status: number): string {
  if (status === 429) return 'The router was asked for evidence too often. Try again in a minute.'
  if (status === 503) return 'The router has no evidence at this moment (503). Try again.'
  return `The router answers ${status} for its evidence. Is this the address of a router?`
}

function summaryOf({ checks, malformed }: Omit<Findings, 'read'>, simulated: boolean): string {
  if (malformed.length === 0) return headline(verdict(checks), { proven: PROVEN, simulated })
  const failed = checks.filter(({ ok }) => !ok).map(({ name }) => name)
  const broken = malformed.map(({ document }) => `the ${document} cannot be read`)
  return `NOT VALID: ${[...broken, ...failed].join(', ')}.`
}

interface JudgedTrust {
  readonly checks: readonly Check[]
  readonly malformed: readonly MalformedEvidence[]
  readonly bundle?: TrustBundle
  readonly jws?: string
  readonly logProofs?: Parameters<typeof checkLogged>[1]
}

async function judgeBundle(
  router: RouterReader,
  { rootJwk, environments }: Requirements,
  { now, state }: PageDeps,
): Promise<JudgedTrust> {
  const address = new URL(
    `${router.base.pathname.replace(/\/$/, '')}/.well-known/trust.json`,
    router.base,
  )
  try {
    const fetched = await fetchTrustBundle(address.href, router.base.origin, router.fetch)
    const { jws, logProofs } = fetched
    if (jws === undefined) return { checks: fetched.checks, malformed: [] }
    const lastAccepted = await state.read(rootJwk)
    const judged = await verifyTrustBundle(jws, rootJwk, { now: now(), environments, lastAccepted })
    const checks = [...fetched.checks, ...judged.checks]
    const { bundle, accepted } = judged
    if (bundle === undefined || accepted === undefined) return { checks, malformed: [] }
    await state.write({ ...accepted, jws })
    return { checks, malformed: [], bundle, jws, logProofs }
  } catch (error) {
    if (error instanceof MalformedEvidence) return { checks: [], malformed: [error] }
    throw error
  }
}

interface JudgedEnvelope extends Findings {
  readonly notes: readonly string[]
  readonly envelope?: Envelope
  readonly result?: Pick<EnvelopeResult, 'report' | 'chain' | 'manifest'>
}

/** The router's answers, and the nonce that they must contain. */
interface Shown {
  readonly body: Bytes
  readonly hpkeKey: ReadAnswer
  readonly nonce: string
}

async function judgeEnvelope(
  { body, hpkeKey, nonce }: Shown,
  { bundle }: JudgedTrust,
  requirements: Requirements,
  { now, anchors }: PageDeps,
): Promise<JudgedEnvelope> {
  const malformed: MalformedEvidence[] = []
  const attempt = async <Value>(work: () => Value | Promise<Value>): Promise<Value | undefined> => {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof MalformedEvidence)) throw error
      malformed.push(error)
      return undefined
    }
  }
  const envelope = await attempt(() => readEnvelope(body))
  if (envelope === undefined) return { checks: [], malformed, read: [], notes: [] }
  const { rootJwk, allowSimulated, requireCrl, crl } = requirements
  const options: SnpOptions = {
    now: now(),
    simulated: allowSimulated ? 'any' : 'refuse',
    requireCrl,
    crl,
    ...(anchors === undefined ? {} : { anchors }),
  }
  const served = await attempt(() => readServedHpkeKey(hpkeKey))
  const live = { nonce, hpkeKeyConfigSha256: served?.hpkeKeyConfigSha256 }
  const trust = bundle && { bundle, rootJwk }
  const whole =
    trust && (await attempt(() => verifyEnvelope(envelope, { ...options, trust, live })))
  // Without a valid bundle and manifest, the hardware is still verified by itself.
  const policy = bundle && policyOfBundle(bundle)
  const alone = policy === undefined ? options : { ...options, policy }
  const result = whole ?? (await attempt(() => verifyEnvelopeHardware(envelope, alone)))
  const { checks = [], notes = [] } = result ?? {}
  return {
    checks,
    // The second verification reports the same malformed documents again.
    malformed: [...new Map(malformed.map((one) => [one.document, one])).values()],
    read: ['attestation envelope'],
    notes: [...notes, ...(served?.notes ?? [])],
    envelope,
    ...(result === undefined ? {} : { result }),
  }
}

function judgeLog(
  envelope: Envelope | undefined,
  { jws, logProofs }: JudgedTrust,
  { logPolicy }: Requirements,
  { now }: PageDeps,
): { readonly checks: readonly Check[]; readonly notes: readonly string[] } {
  if (logPolicy === undefined || jws === undefined || envelope === undefined) {
    return { checks: [], notes: [] }
  }
  const documents = { trustBundleJws: jws, manifestJws: envelope.workload_identity_manifest_jws }
  const { checks } = checkLogged(documents, logProofs, logPolicy, now())
  if (logPolicy.required) return { checks, notes: [] }
  return { checks: [], notes: checks.map(({ name, detail }) => `${name}: ${detail}`) }
}
