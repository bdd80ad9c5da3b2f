import { createHash } from 'node:crypto'
import { accessSync, constants, createReadStream, writeFileSync } from 'node:fs'
import { lstat, open, readFile, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { draftFile, type Draft } from '../../client/node/replace-file.ts'
import { fromUtf8 } from '../../protocol/bytes.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { describePublicKey, importSigningKey } from '../../enclave/release/signing-key.ts'
import type { PublicSigningJwk, SigningKey } from '../../enclave/release/signing-key.ts'
import { ReleaseError } from './release-error.ts'

/** Permission bits of all users but the owner. */
const OTHER_USERS_MODE = 0o077

/** Where the two halves of a key are written. */
export interface KeyFiles {
  readonly private: string
  readonly public: string
}

/**
 * Writes both halves of a key, or neither: a private key that is left behind without its public one would only be a
 * secret too many, and in the way of the next try.
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

/** As `writeNew` would, before anything is written. A link that leads nowhere is in the way, too. */
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

/** Refuses a file that other users can read: its key must be considered compromised. */
export async function readPrivateKey(path: string): Promise<SigningKey> {
  return reading(path, async () => {
    await requirePrivate(path)
    return importSigningKey(await parseFile(path))
  })
}

/** The text of a file with a secret, refused as by `readPrivateKey`. */
export async function readPrivateText(path: string): Promise<string> {
  return reading(path, async () => {
    await requirePrivate(path)
    return fromUtf8(await readFile(path))
  })
}

/** A folder is left to the reader, which says that it is one: its mode is not the fault. */
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

/** Without white space around it. */
export async function readText(path: string): Promise<string> {
  return (await readWholeText(path)).trim()
}

export async function readWholeText(path: string): Promise<string> {
  return reading(path, async () => fromUtf8(await readFile(path)))
}

/** A public document, and where it goes. */
interface PublicDocument {
  readonly path: string
  readonly text: string
}

/**
 * Replaces a public document. Its readers see either the old text or the new one, except where the file cannot be replaced.
 * What is no file is written to.
 * @throws ReleaseError where it cannot be written, or a private key is there: a wrong name must not cost a key
 */
export async function writeDocument(path: string, text: string): Promise<void> {
  await writeDocuments([{ path, text }])
}

/**
 * As `writeDocument`, of documents that belong together: none is replaced before the disk has all of them.
 * @param first writes what they are no use without, such as the key that signed them; when it fails, none is replaced
 */
export async function writeDocuments(
  documents: readonly PublicDocument[],
  first?: () => Promise<void>,
): Promise<void> {
  const drafts: Draft[] = []
  try {
    for (const document of documents) drafts.push(await draftDocument(document))
    await first?.()
    for (const draft of drafts) draft.replace()
  } finally {
    for (const draft of drafts) draft.discard()
  }
}

/**
 * Finds out what can be known before there is a document: a wrong name, and a place that takes no file.
 * @throws ReleaseError as `writeDocument`
 */
export async function requireWritable(path: string): Promise<void> {
  const draft = await draftDocument({ path, text: '' })
  draft.discard()
}

async function draftDocument({ path, text }: PublicDocument): Promise<Draft> {
  const found = await stat(path).catch(() => undefined)
  if (found?.isFile() === true) await requireNoPrivateKey(path, found.size)
  if (found?.isDirectory() === true) throw new ReleaseError(`${path} cannot be written: EISDIR`)
  const replaceable = found === undefined || found.isFile()
  const write = () => writeFileSync(path, text)
  return writing(path, () => {
    const draft = replaceable ? unlessFixed(() => draftFile(path, text, 0o644)) : undefined
    if (draft === undefined) accessSync(found === undefined ? dirname(path) : path, constants.W_OK)
    return {
      replace: () =>
        writing(path, () =>
          unlessFixed(() => (draft === undefined ? write() : draft.replace()), write),
        ),
      discard: () => draft?.discard(),
    }
  })
}

/** Why a file cannot be replaced that may still be written: it is mounted by itself, or its folder takes no other file. */
const FIXED: readonly unknown[] = ['EBUSY', 'EXDEV', 'EACCES', 'EROFS']

function unlessFixed<T>(work: () => T, otherwise?: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && FIXED.includes(error.code))) throw error
    return otherwise?.()
  }
}

/** No private key is longer. */
const MAX_KEY_BYTES = 4_096

async function requireNoPrivateKey(path: string, size: number): Promise<void> {
  if (size > MAX_KEY_BYTES) return
  const text = await readFile(path, 'utf8').catch(() => '')
  if (PRIVATE_KEYS.some((form) => form.test(text))) {
    throw new ReleaseError(`${path} holds a private key, and is not replaced`)
  }
}

/** A JWK's private member, and the beginnings of a note's key and of PEM. */
const PRIVATE_KEYS = [/"d"\s*:/, /^PRIVATE\+KEY\+/, /^-----BEGIN [A-Z ]*PRIVATE KEY-----/]

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
 * Makes a file. Leaves nothing behind of one that the disk does not take as a whole.
 * @throws ReleaseError also where it is there already
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

function writing<T>(path: string, work: () => T): T {
  try {
    return work()
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

/** Codes that say nothing to whoever gave the file. */
const REASONS: Readonly<Record<string, string>> = {
  ERR_ENCODING_INVALID_ENCODED_DATA: 'not UTF-8',
}

/** Names the problem without quoting the file, which may contain a key. */
function reasonOf(error: unknown): string {
  if (error instanceof ReleaseError) return error.message
  if (!(error instanceof Error)) return 'unknown error'
  if ('code' in error && typeof error.code === 'string') return REASONS[error.code] ?? error.code
  return error.name === 'MalformedEvidence' ? error.message : 'not a file of the expected form'
}
