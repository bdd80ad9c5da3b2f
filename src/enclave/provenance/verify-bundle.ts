import { bundleFromJSON, ValidationError, type Bundle } from '@sigstore/bundle'
import { hex32 } from '../../protocol/hex-schema.ts'
import { TrustedRoot } from '@sigstore/protobuf-specs'
import {
  toSignedEntity,
  toTrustMaterial,
  VerificationError,
  Verifier,
  type SignedEntity,
  type Signer,
} from '@sigstore/verify'
import { z } from 'zod'
import { fromUtf8, utf8 } from '../../protocol/bytes.ts'
import type { BuildIdentity } from '../../protocol/provider-policy.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { PARTIES_DIFFER_MS } from '../../verify/clock.ts'
import { EvidenceRefused } from '../../verify/evidence-refused.ts'
import type { BuildRecord, Release, VerifyProvenance } from '../../verify/providers/provenance.ts'
import { readSignerClaims } from './signer-claims.ts'
import { SIGSTORE_TRUSTED_ROOT } from './trusted-root.ts'

/** Larger bundles are refused unread; real ones have about 20 KiB. */
const MAX_BUNDLE_CHARS = 1_048_576

const IN_TOTO = 'application/vnd.in-toto+json'

const statementSchema = z.looseObject({
  _type: z.literal('https://in-toto.io/Statement/v1'),
  /** Exactly one: with several subjects it would be unclear which of them the statement describes. */
  subject: z.tuple([
    z.looseObject({
      digest: z.looseObject({ sha256: hex32 }),
    }),
  ]),
  predicateType: z.string(),
  predicate: z.unknown(),
})

/** A verifier with the pinned certificate authorities and logs of the public Sigstore instance. */
export const verifySigstoreBundle: VerifyProvenance =
  createProvenanceVerifier(SIGSTORE_TRUSTED_ROOT)

/**
 * A verifier with a trusted root of the caller's choice (`trusted_root.json` of Sigstore). It requires one
 * certificate with a proof that it was logged, one log entry with a proof of inclusion, a time attested by the log or
 * a time stamp authority at which the certificate was valid, and one DSSE signature over an in-toto statement.
 */
export function createProvenanceVerifier(trustedRoot: unknown): VerifyProvenance {
  const material = toTrustMaterial(TrustedRoot.fromJSON(trustedRoot))
  const verifier = new Verifier(material, {
    ctlogThreshold: 1,
    tlogThreshold: 1,
    timestampThreshold: 1,
  })
  return (text, identity, now) => {
    const bundle = readBundle(text)
    const loggedAt = verify(verifier, bundle)
    const release = requireIdentity(loggedAt.signer, identity, {
      logged_at: loggedAt.time.toISOString(),
      log_index: loggedAt.index,
    })
    requireDates(loggedAt.time.getTime(), identity, now)
    return { ...readStatement(bundle), release }
  }
}

function readBundle(text: string): Bundle {
  if (text.length > MAX_BUNDLE_CHARS) throw new EvidenceRefused('too_large')
  try {
    return bundleFromJSON(parseStrictJson(utf8(text), 'Sigstore bundle'))
  } catch (cause) {
    const unlogged =
      cause instanceof ValidationError && cause.fields.some((field) => /inclusion/i.test(field))
    throw refused(unlogged ? 'record_log' : 'record_form', cause)
  }
}

interface Logged {
  readonly signer: Signer
  readonly time: Date
  readonly index: string
}

function verify(verifier: Verifier, bundle: Bundle): Logged {
  const { content, tlogEntries } = bundle.verificationMaterial
  if (content.$case !== 'certificate' && content.$case !== 'x509CertificateChain') {
    throw refused('record_form')
  }
  const [entry, ...more] = tlogEntries
  if (entry?.inclusionProof === undefined || more.length > 0) throw refused('record_log')
  try {
    const entity = toSignedEntity(bundle)
    const signer = verifier.verify(entity)
    // The latest time: by then the record certainly existed.
    const times = entity.timestamps.flatMap(vouchedTime)
    return { signer, time: new Date(Math.max(...times)), index: entry.logIndex }
  } catch (error) {
    throw refused(checkOf(error), error)
  }
}

/**
 * The times that a timestamp proves; the log's own time counts only with the inclusion promise, whose signature covers
 * it.
 */
function vouchedTime(stamp: SignedEntity['timestamps'][number]): number[] {
  if (stamp.$case === 'timestamp-authority') return [stamp.timestamp.signingTime.getTime()]
  const { inclusionPromise, integratedTime } = stamp.tlogEntry
  return inclusionPromise === undefined ? [] : [Number(integratedTime) * 1000]
}

/** Maps the library's error to one of our checks. */
function checkOf(error: unknown): string {
  if (!(error instanceof VerificationError)) return 'record_form'
  const cause: unknown = error.cause
  const reason = cause instanceof Error ? cause.message : ''
  if (/not valid or expired/.test(reason)) return 'record_expired'
  return FINDINGS.find(([code]) => error.code.startsWith(code))?.[1] ?? 'record_form'
}

const FINDINGS: readonly (readonly [code: string, check: string])[] = [
  ['TIMESTAMP', 'record_time'],
  ['TLOG', 'record_log'],
  ['CERTIFICATE', 'record_certificate'],
  ['SIGNATURE', 'record_signature'],
]

/** Compares the complete identity of the workflow that signed. The tag may be any; it becomes the release's name. */
function requireIdentity(
  signer: Signer,
  { repository, workflow, issuer }: BuildIdentity,
  logged: Pick<Release, 'logged_at' | 'log_index'>,
): Release {
  const claims = readSignerClaims(signer)
  const source = `https://github.com/${repository}`
  const run = `${source}/${workflow}@refs/tags/`
  const tag = claims.subject.startsWith(run) ? claims.subject.slice(run.length) : ''
  const isOurs =
    claims.issuer === issuer &&
    /^[\w.+/-]{1,128}$/.test(tag) &&
    claims.sourceRepository === source &&
    claims.sourceRef === `refs/tags/${tag}` &&
    claims.runner === 'github-hosted' &&
    /^[0-9a-f]{40,64}$/.test(claims.sourceDigest)
  if (!isOurs) throw refused('record_identity')
  return { repository, tag, commit: claims.sourceDigest, ...logged }
}

function requireDates(loggedAt: number, { not_before: since }: BuildIdentity, now: number): void {
  if (loggedAt > now + PARTIES_DIFFER_MS) throw refused('record_time')
  if (since !== undefined && loggedAt < Date.parse(since)) throw refused('record_too_old')
}

function readStatement({ content }: Bundle): Omit<BuildRecord, 'release'> {
  const signatures = content.$case === 'dsseEnvelope' ? content.dsseEnvelope.signatures : []
  if (content.$case !== 'dsseEnvelope' || signatures.length !== 1) throw refused('record_form')
  const { payload, payloadType } = content.dsseEnvelope
  if (payloadType !== IN_TOTO) throw refused('record_form')
  const statement = statementSchema.safeParse(parseStatement(payload)).data
  if (statement === undefined) throw refused('record_form')
  const { predicateType, predicate, subject } = statement
  return { predicateType, predicate, subjectSha256: subject[0].digest.sha256 }
}

function parseStatement(payload: Uint8Array): unknown {
  try {
    return parseStrictJson(utf8(fromUtf8(Uint8Array.from(payload))), 'in-toto statement')
  } catch (cause) {
    throw refused('record_form', cause)
  }
}

function refused(check: string, cause?: unknown): EvidenceRefused {
  return new EvidenceRefused('provenance', [check], { cause })
}
