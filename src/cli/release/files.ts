import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { lstat, open, readFile, rm, stat } from 'node:fs/promises'
import { fromUtf8 } from '../../protocol/bytes.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { describePublicKey, importSigningKey } from '../../enclave/release/signing-key.ts'
import type { PublicSigningJwk, SigningKey } from '../../enclave/release/signing-key.ts'
import { ReleaseError } from './release-error.ts'

/** Permission bits of all users but the owner. */
const OTHER_USERS_MODE = 0o077

/** Paths of the two halves of a key pair. */
export interface KeyFiles {
  readonly private: string
  readonly public: string
}

/**
 * Writes both halves of a key pair, or neither: a private key left behind without its public key would be a needless
 * secret and would block the next attempt.
 */
export async function writeKeyPair(files: KeyFiles, key: SigningKey): Promise<void> {
  await requireAbsent(files.public)
  await writePrivateKey(files.private, key)
  try {
    await writeNew(files.public, `${JSON.stringify(key.publicJwk, null, 2)}\n`, 0o644)
  } catch (error) {
    await rm(files.private, { force: true })
    throw error
  }
}

/**
 * Fails as `writeNew` would if the path exists, but before anything is written. A dangling symbolic link counts as
 * existing.
 */
async function requireAbsent(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined)
  if (found !== undefined) throw new ReleaseError(`${path} cannot be written: EEXIST`)
}

/** Writes a private key that only the owner can read; never replaces an existing file. */
export async function writePrivateKey(path: string, { privateKey }: SigningKey): Promise<void> {
  const jwk = await crypto.subtle.exportKey('jwk', privateKey)
  const { kty, crv, x, y, d } = jwk
  await writeNew(path, `${JSON.stringify({ kty, crv, x, y, d }, null, 2)}\n`, 0o600)
}

/** Reads a private key. Refuses a file that other users can read or change: its key must be considered compromised. */
export async function readPrivateKey(path: string): Promise<SigningKey> {
  return reading(path, async () => {
    await requirePrivate(path)
    return importSigningKey(await parseFile(path))
  })
}

/** The text of a file with a secret; refuses the same files as `readPrivateKey`. */
export async function readPrivateText(path: string): Promise<string> {
  return reading(path, async () => {
    await requirePrivate(path)
    return fromUtf8(await readFile(path))
  })
}

/**
 * Refuses a file that other users can read or change. Accepts a directory, so that the following read reports that
 * instead of a wrong mode.
 */
async function requirePrivate(path: string): Promise<void> {
  const found = await stat(path)
  if (found.isDirectory() || (found.mode & OTHER_USERS_MODE) === 0) return
  throw new ReleaseError('others may read or change this private key; chmod 600 it')
}

export async function readPublicKey(path: string): Promise<PublicSigningJwk> {
  return reading(path, async () => describePublicKey(await parseFile(path)))
}

export async function readJson(path: string): Promise<unknown> {
  return reading(path, () => parseFile(path))
}

/** The text of a file, without surrounding white space. */
export async function readText(path: string): Promise<string> {
  return (await readWholeText(path)).trim()
}

export async function readWholeText(path: string): Promise<string> {
  return reading(path, async () => fromUtf8(await readFile(path)))
}

/** SHA-256 of a file of any size, lowercase hex. */
export async function hashFile(path: string): Promise<string> {
  return reading(path, async () => {
    const hash = createHash('sha256')
    for await (const chunk of createReadStream(path) as AsyncIterable<Uint8Array>) {
      hash.update(chunk)
    }
    return hash.digest('hex')
  })
}

async function parseFile(path: string): Promise<unknown> {
  return parseStrictJson(await readFile(path), 'file')
}

/**
 * Writes a new file. Removes the file again if it cannot be written completely.
 * @throws ReleaseError, also if the file exists
 */
export async function writeNew(path: string, text: string, mode: number): Promise<void> {
  try {
    const file = await open(path, 'wx', mode)
    try {
      await file.writeFile(text)
    } catch (error) {
      await rm(path, { force: true })
      throw error
    } finally {
      await file.close()
    }
  } catch (cause) {
    throw new ReleaseError(`${path} cannot be written: ${reasonOf(cause)}`, { cause })
  }
}

async function reading<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    throw new ReleaseError(`${path} cannot be used: ${reasonOf(cause)}`, { cause })
  }
}

/** Readable reasons for error codes that would tell the user nothing. */
const REASONS: Readonly<Record<string, string>> = {
  ERR_ENCODING_INVALID_ENCODED_DATA: 'not UTF-8',
}

/** Names the problem without quoting the file, which may contain a key. */
export function reasonOf(error: unknown): string {
  if (error instanceof ReleaseError) return error.message
  if (!(error instanceof Error)) return 'unknown error'
  if ('code' in error && typeof error.code === 'string') return REASONS[error.code] ?? error.code
  return error.name === 'MalformedEvidence' ? error.message : 'not a file of the expected form'
}
