import type { Database } from './database.ts'
import { textOf } from './row.ts'
import { int64, sql } from './sql.ts'

/** A receipt key's public half and one envelope that bound it. */
export interface SigningKey {
  readonly kid: string
  /** The public JWK as JSON. */
  readonly jwkJson: string
  /** SHA-256 of the exact bytes of `envelopeJson`, lowercase hex. */
  readonly envelopeSha256: string
  readonly envelopeJson: string
}

/** Stores a key with its envelope, or records that the pair is still in use. `now` is ms since the epoch. */
export async function rememberSigningKey(
  directory: Database,
  key: SigningKey,
  now: number,
): Promise<void> {
  await directory.batch([
    sql`INSERT INTO signing_keys (kid, envelope_sha256, jwk, envelope, created_at, seen_at)
      VALUES (${key.kid}, ${key.envelopeSha256}, ${key.jwkJson}, ${key.envelopeJson},
        ${int64(now)}, ${int64(now)})
      ON CONFLICT (kid, envelope_sha256) DO UPDATE SET seen_at = excluded.seen_at
      WHERE signing_keys.seen_at < excluded.seen_at`,
  ])
}

/** Whether a key is stored with this envelope. */
export async function hasSigningKey(
  directory: Database,
  { kid, envelopeSha256 }: Pick<SigningKey, 'kid' | 'envelopeSha256'>,
): Promise<boolean> {
  const [rows = []] = await directory.batch([
    sql`SELECT 1 AS one FROM signing_keys
      WHERE kid = ${kid} AND envelope_sha256 = ${envelopeSha256}`,
  ])
  return rows.length > 0
}

/** Each key that was in use since `notBefore` (ms since the epoch) once, newest first. */
export async function listSigningKeys(
  directory: Database,
  notBefore: number,
): Promise<readonly Pick<SigningKey, 'kid' | 'jwkJson'>[]> {
  const [rows = []] = await directory.batch([
    sql`SELECT kid, MIN(jwk) AS jwk FROM signing_keys
      WHERE seen_at >= ${int64(notBefore)} GROUP BY kid ORDER BY MAX(seen_at) DESC, kid`,
  ])
  return rows.map((row) => ({ kid: textOf(row, 'kid'), jwkJson: textOf(row, 'jwk') }))
}

/** The SHA-256 of the newest stored envelope that bound this key. */
export async function findEnvelopeOf(
  directory: Database,
  kid: string,
): Promise<string | undefined> {
  const [rows = []] = await directory.batch([
    sql`SELECT envelope_sha256 FROM signing_keys WHERE kid = ${kid}
      ORDER BY seen_at DESC, envelope_sha256 LIMIT 1`,
  ])
  const [row] = rows
  return row === undefined ? undefined : textOf(row, 'envelope_sha256')
}

/** The exact text of a stored envelope, by the digest of its bytes. */
export async function findEnvelope(
  directory: Database,
  sha256: string,
): Promise<string | undefined> {
  const [rows = []] = await directory.batch([
    sql`SELECT envelope FROM signing_keys WHERE envelope_sha256 = ${sha256} LIMIT 1`,
  ])
  const [row] = rows
  return row === undefined ? undefined : textOf(row, 'envelope')
}
