import { accessSync, constants, writeFileSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { draftFile, type Draft } from '../../client/node/replace-file.ts'
import { reasonOf } from './files.ts'
import { ReleaseError } from './release-error.ts'

/** A public document, and where it goes. */
interface PublicDocument {
  readonly path: string
  readonly text: string
}

/**
 * Replaces a public document. Readers see either the old text or the new one, unless the file cannot be replaced and is
 * overwritten in place. Writes to anything that is not a regular file, such as a pipe, directly.
 * @throws ReleaseError where it cannot be written, or the path holds a private key: a mistyped name must not destroy a key
 */
export async function writeDocument(path: string, text: string): Promise<void> {
  await writeDocuments([{ path, text }])
}

/**
 * Replaces documents that belong together: none is replaced before all of them are on the disk.
 * @param first writes what the documents need, such as the key that signed them; if it fails, none is replaced
 * @throws ReleaseError as `writeDocument`
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
 * Checks what can be checked before the document exists: that the path takes a file, and holds no private key.
 * @throws ReleaseError as `writeDocument`
 */
export async function requireWritable(path: string): Promise<void> {
  const draft = await draftDocument({ path, text: '' })
  draft.discard()
}

async function draftDocument({ path, text }: PublicDocument): Promise<Draft> {
  const found = await stat(path).catch(() => undefined)
  if (found?.isDirectory() === true) throw new ReleaseError(`${path} cannot be written: EISDIR`)
  if (found?.isFile() === true) await requireNoPrivateKey(path, found.size)
  const isReplaceable = found === undefined || found.isFile()
  const overwrite = () => writeFileSync(path, text)
  return writing(path, () => {
    const beside = isReplaceable ? unlessFixed(() => draftFile(path, text, 0o644)) : 'fixed'
    if (beside !== 'fixed') {
      const replace = () => {
        if (unlessFixed(() => beside.replace()) === 'fixed') overwrite()
      }
      return { replace: () => writing(path, replace), discard: () => beside.discard() }
    }
    accessSync(found === undefined ? dirname(path) : path, constants.W_OK)
    return { replace: () => writing(path, overwrite), discard: () => {} }
  })
}

/**
 * Error codes when a file cannot be replaced but may still be overwritten: it is a mount point, or its directory cannot
 * take another file.
 */
const FIXED: readonly unknown[] = ['EBUSY', 'EXDEV', 'EACCES', 'EROFS']

function unlessFixed<T>(work: () => T): T | 'fixed' {
  try {
    return work()
  } catch (error) {
    if (error instanceof Error && 'code' in error && FIXED.includes(error.code)) return 'fixed'
    throw error
  }
}

/** No private key is longer, bytes: one of RSA with 16,384 bits takes 13,000 in PEM. */
const MAX_KEY_BYTES = 32_768

/** What files with private keys contain: JWK, key of a signed note, PEM, which may have other texts ahead of it. */
const PRIVATE_KEYS = [/"d"\s*:/, /^PRIVATE\+KEY\+/, /^-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----/m]

async function requireNoPrivateKey(path: string, size: number): Promise<void> {
  if (size > MAX_KEY_BYTES) return
  const text = await readFile(path, 'utf8').catch(() => '')
  if (PRIVATE_KEYS.some((form) => form.test(text))) {
    throw new ReleaseError(`${path} holds a private key, and is not replaced`)
  }
}

function writing<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (cause) {
    throw new ReleaseError(`${path} cannot be written: ${reasonOf(cause)}`, { cause })
  }
}
