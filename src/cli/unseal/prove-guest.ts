import { REPORT_DATA_V2, type Envelope } from '../../protocol/envelope.ts'
import type { Es256Jwk } from '../../protocol/jwk.ts'
import { toHex } from '../../protocol/bytes.ts'
import { judge, verdict, type Check } from '../../verify/check.ts'
import { verifyEnvelope } from '../../verify/envelope.ts'
import { readEnvelope } from '../../verify/envelope-hardware.ts'
import { acceptBundle, obtainBundle, type RunInTurn } from '../verify/accepted-bundle.ts'
import { InputError } from '../verify/input-error.ts'
import type { GuestConnection } from './guest-connection.ts'

/** What a router must prove before it receives secrets. */
export interface GuestPolicy {
  readonly rootJwk: Es256Jwk
  /** SHA-256 of the configuration that its secrets are meant for, lowercase hex. */
  readonly configurationSha256: string
  /** The operator's own copy of the trust bundle (JWS); without it, the one that the router publishes. */
  readonly bundle?: string | undefined
  readonly allowSimulated: boolean
  /** Refuses evidence without AMD's revocation list, which the router's host could omit. */
  readonly requireCrl: boolean
  readonly environment?: string | undefined
  /** The file with the last accepted bundle; `none`: it is not stored. */
  readonly state: string
  /** Serialises access to that file when several routers are verified concurrently. */
  readonly inTurn?: RunInTurn | undefined
}

export interface GuestProof {
  readonly ok: boolean
  readonly checks: readonly Check[]
  /** What could not be judged, and why. */
  readonly notes: readonly string[]
  /** The random nonce of this proof; the router accepts one unseal document per nonce. */
  readonly nonce: string
}

/**
 * Verifies a router by the rules of production, on the connection that will carry secrets: release root -> bundle ->
 * report for a fresh nonce -> measurement, TCB, release -> the live TLS key -> the configuration.
 * @throws InputError when the router does not answer with its evidence
 * @throws MalformedEvidence when the evidence cannot be parsed
 */
export async function proveGuest(
  connection: GuestConnection,
  policy: GuestPolicy,
): Promise<GuestProof> {
  const nonce = toHex(crypto.getRandomValues(new Uint8Array(32)))
  const trusted = await trustFor(connection, policy)
  if (trusted.bundle === undefined) return { ok: false, checks: trusted.checks, notes: [], nonce }
  const answer = await connection.get(`/attestation?nonce=${nonce}`)
  if (answer.status !== 200) {
    throw new InputError(`${connection.base.origin}/attestation answers ${answer.status}`)
  }
  const envelope = readEnvelope(answer.body)
  const result = await verifyEnvelope(envelope, {
    now: Date.now(),
    simulated: policy.allowSimulated ? 'any' : 'refuse',
    requireCrl: policy.requireCrl,
    trust: { bundle: trusted.bundle, rootJwk: policy.rootJwk },
    live: { nonce, tlsSpkiSha256: connection.tlsSpkiSha256 },
  })
  const configuration = checkConfiguration(envelope, policy.configurationSha256)
  const judged = verdict([...trusted.checks, ...result.checks, configuration])
  return { ...judged, notes: result.notes, nonce }
}

/** The operator's own bundle takes precedence over the published one: a router might publish an outdated bundle. */
function trustFor(connection: GuestConnection, policy: GuestPolicy) {
  const { bundle, rootJwk } = policy
  return bundle === undefined
    ? obtainBundle(connection, rootJwk, policy)
    : acceptBundle(bundle, rootJwk, policy)
}

function checkConfiguration({ report_data_binding: binding }: Envelope, wanted: string): Check {
  const bound = binding?.label === REPORT_DATA_V2 ? binding.configuration_sha256 : 'none'
  const fault = bound === wanted ? undefined : `the router has the configuration ${bound} in force`
  return judge('configuration', fault, wanted)
}
