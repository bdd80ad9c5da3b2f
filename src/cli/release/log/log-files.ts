import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { fromBase64, fromUtf8, utf8, type Bytes } from '../../../protocol/bytes.ts'
import { parseStrictJson } from '../../../protocol/strict-json.ts'
import { publishedTrustBundleSchema } from '../../../protocol/trust-bundle.ts'
import { namesUser } from '../../../protocol/url-user.ts'
import { emptyRoot, type TreeHead } from '../../../verify/transparency/merkle.ts'
import { writeDocument } from '../documents.ts'
import { readPrivateText, readText } from '../files.ts'
import { ReleaseError } from '../release-error.ts'
import type { ReadLogFile } from './audit-log.ts'
import { parseNoteSigner, type NoteSigner } from './note-signer.ts'

const stateSchema = z.object({ size: z.int().min(0), root: z.base64() })

/**
 * The log entry of a document: its JWS text without surrounding white space, whether the file is a bare JWS or a
 * published trust bundle.
 * @throws ReleaseError when the file cannot be read, or is JSON but not a published trust bundle
 * @throws MalformedEvidence when the file starts like JSON but is not valid JSON
 */
export async function readEntry(path: string): Promise<Bytes> {
  const text = await readText(path)
  return utf8(text.startsWith('{') ? asPublished(text, path).trust_bundle_jws : text)
}

/**
 * Adds the log proof of a document to the published trust bundle: as the bundle's own proof if the document is that
 * bundle, otherwise as the manifest's.
 * @throws the errors of `readPublished`
 */
export async function attachProof(path: string, entry: Bytes, proof: string): Promise<void> {
  const published = await readPublished(path)
  const { trust_bundle_jws: jws, log_proofs: proofs } = published
  const subject = fromUtf8(entry) === jws ? 'trust_bundle' : 'manifest'
  const document = { ...published, log_proofs: { ...proofs, [subject]: proof } }
  await writeDocument(path, `${JSON.stringify(document)}\n`)
}

/**
 * A trust bundle as it is published.
 * @throws ReleaseError when the file is not one
 * @throws MalformedEvidence when it is not JSON
 */
export async function readPublished(path: string) {
  return asPublished(await readText(path), path)
}

function asPublished(text: string, path: string) {
  const parsed = publishedTrustBundleSchema.safeParse(parseStrictJson(text, path))
  if (parsed.success) return parsed.data
  throw new ReleaseError(`${path} is no published trust bundle`)
}

/** @throws ReleaseError when other users can read or change the file, or it cannot be read */
export async function readSigner(path: string): Promise<NoteSigner> {
  return parseNoteSigner(await readPrivateText(path))
}

/**
 * The tree head of the previous audit; the empty tree when there was none.
 * @throws ReleaseError when the file exists but holds no tree head: an audit that started from the empty tree would not
 *   notice that the log's history has changed
 */
export async function readTreeHead(path: string): Promise<TreeHead> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  })
  if (text === undefined) return { size: 0, root: emptyRoot() }
  try {
    const { size, root } = stateSchema.parse(JSON.parse(text))
    return { size, root: fromBase64(root) }
  } catch (cause) {
    throw new ReleaseError(`${path} is damaged; look into it before removing it`, { cause })
  }
}

const ADDRESS = /^[a-z][a-z0-9+.-]*:\/\//i

/**
 * Reads the files of a log from a folder, or over HTTP or HTTPS.
 * @throws ReleaseError for an address of another form, or with a user name or password; the message does not quote it
 */
export function logReader(prefix: string): ReadLogFile {
  if (!ADDRESS.test(prefix)) {
    return async (path) => new Uint8Array(await readFile(join(prefix, path)))
  }
  requireOpenAddress(prefix)
  return async (path) => {
    const address = `${prefix.replace(/\/$/, '')}/${path}`
    const response = await fetch(address, { redirect: 'error' }).catch((cause: unknown) => {
      throw new ReleaseError(`the log does not answer at ${address}`, { cause })
    })
    if (!response.ok)
      throw new ReleaseError(`the log answers ${path} with status ${response.status}`)
    return new Uint8Array(await response.arrayBuffer())
  }
}

/** Refuses an address without quoting it: even an unparsable one may contain a password. */
function requireOpenAddress(text: string): void {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new ReleaseError('a log is read from a folder, or from an http or https address')
  }
  if (namesUser(url)) {
    throw new ReleaseError(
      'leave user name and password out of the address of the log, whose files are for everybody',
    )
  }
}
