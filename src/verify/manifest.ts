import { parseCompactJws } from '../protocol/compact-jws.ts'
import { sha256Hex } from '../protocol/digest.ts'
import { jwkThumbprint, type EcPoint } from '../protocol/jwk.ts'
import { MANIFEST_TYP, manifestSchema, type Manifest } from '../protocol/manifest.ts'
import { readDocument } from '../protocol/read-document.ts'
import { parseStrictJson } from '../protocol/strict-json.ts'
import type { TrustBundle } from '../protocol/trust-bundle.ts'
import { firstFault, judge, verdict, type Check } from './check.ts'
import { milliseconds } from './clock.ts'
import { checkJws } from './jws.ts'
import { disregardedRevocation, revocationFault, type RevocationRule } from './revoked.ts'

const DOCUMENT = 'workload manifest'

/** What a relying party trusts when it verifies an envelope. */
export interface Trust {
  /** The bundle that decides. */
  readonly bundle: TrustBundle
  readonly rootJwk: EcPoint
  /** The newest known bundle, if it is a different one: only its revocations are used. */
  readonly newest?: TrustBundle | undefined
  /** Accepts documents that were made before the `since` of their revocation, as of the time of verification. */
  readonly acceptBeforeRevocation?: boolean | undefined
}

/** The rule for which revocations apply to a document that claims to be made at `now`. */
export function revocationRule(
  { bundle, newest, acceptBeforeRevocation }: Trust,
  now: number,
): RevocationRule {
  return {
    bundles: newest === undefined ? [bundle] : [bundle, newest],
    madeAt: acceptBeforeRevocation === true ? now : undefined,
  }
}

export interface ManifestResult {
  readonly checks: readonly Check[]
  /** Revocations of the manifest's key that were disregarded. */
  readonly disregarded: readonly string[]
  /** Present only where its signature is verified. */
  readonly manifest?: Manifest
}

/** Checks that the tag is the SHA-256 of the exact text of the manifest. */
export async function checkTag(manifestJws: string, tag: string): Promise<Check> {
  const actual = await sha256Hex(manifestJws)
  const fault = actual === tag ? undefined : `the manifest's tag is ${actual}`
  return judge('workload_identity_tag', fault, tag)
}

/**
 * Verifies the workload manifest with the key that the bundle delegates for this, or with the release root where a
 * legacy bundle delegates none.
 * @throws MalformedEvidence when the JWS or the manifest cannot be parsed
 */
export async function checkManifest(
  text: string,
  workload: string,
  { trust, now }: { trust: Trust; now: number },
): Promise<ManifestResult> {
  if (text === '') {
    const fault = 'there is none: the build is not signed'
    return { checks: [judge('manifest_signature', fault, '')], disregarded: [] }
  }
  const { key, check, disregarded } = await manifestKey(trust, now)
  const jws = parseCompactJws(text, DOCUMENT)
  const expectation = { document: 'manifest', typ: [MANIFEST_TYP], key } as const
  const signature = await checkJws(jws, expectation)
  if (!verdict(signature).ok) return { checks: [check, ...signature], disregarded }
  const manifest = readDocument(manifestSchema, parseStrictJson(jws.payload, DOCUMENT), DOCUMENT)
  const fault = manifest.workload === workload ? undefined : `it describes ${manifest.workload}`
  const described = judge('manifest_workload', fault, `${workload} ${manifest.version}`)
  return { checks: [check, ...signature, described], disregarded, manifest }
}

interface ManifestKey extends Pick<ManifestResult, 'disregarded'> {
  readonly key: EcPoint
  readonly check: Check
}

async function manifestKey(trust: Trust, now: number): Promise<ManifestKey> {
  const { bundle, rootJwk } = trust
  const delegated = bundle.delegated_keys.workload_manifest
  if (delegated === undefined) {
    const check = judge('manifest_key', undefined, 'the release root')
    return { key: rootJwk, check, disregarded: [] }
  }
  const kid = await jwkThumbprint(delegated.jwk)
  const rule = revocationRule(trust, now)
  const fault = firstFault(
    revocationFault({ keys: [kid] }, rule),
    milliseconds(delegated.not_before) > now && `key ${kid} is not yet in force`,
    milliseconds(delegated.not_after) <= now && `key ${kid} expired at ${delegated.not_after}`,
  )
  return {
    key: delegated.jwk,
    check: judge('manifest_key', fault, `delegated key ${kid}`),
    disregarded: disregardedRevocation('manifest_key', { keys: [kid] }, rule),
  }
}
