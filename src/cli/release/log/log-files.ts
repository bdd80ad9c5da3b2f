import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { equalBytes, fromBase64, utf8, type Bytes } from '../../../protocol/bytes.ts'
import { parseCompactJws } from '../../../protocol/compact-jws.ts'
import { sha256Hex } from '../../../protocol/digest.ts'
import { readDocument } from '../../../protocol/read-document.ts'
import { parseStrictJson } from '../../../protocol/strict-json.ts'
import {
  publishedTrustBundleSchema,
  trustBundleSchema,
  type LogProofs,
} from '../../../protocol/trust-bundle.ts'
import { namesUser } from '../../../protocol/url-user.ts'
import { emptyRoot, type TreeHead } from '../../../verify/transparency/merkle.ts'
import { writeDocument } from '../documents.ts'
import { readPrivateText, readText } from '../files.ts'
import { ReleaseError } from '../release-error.ts'
import type { ReadLogFile } from './audit-log.ts'
import { parseNoteSigner, type NoteSigner } from './note-signer.ts'

const DOCUMENT = 'trust bundle'
const tagsSchema = trustBundleSchema.pick({ allowed_identity_tags: true })
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
 * bundle, as the manifest's if it is a manifest that the bundle allows.
 * @throws the errors of `requireSubject`
 */
export async function attachProof(path: string, entry: Bytes, proof: string): Promise<void> {
  const published = await readPublished(path)
  const subject = await subjectOf(entry, published.trust_bundle_jws, path)
  const document = { ...published, log_proofs: { ...published.log_proofs, [subject]: proof } }
  await writeDocument(path, `${JSON.stringify(document)}\n`)
}

/**
 * Checks that the proof of an entry has a place in the published trust bundle.
 * @throws ReleaseError when the entry is neither that bundle nor a manifest that it allows, or the file is no published
 *   trust bundle
 * @throws MalformedEvidence when the file or the bundle in it cannot be parsed
 */
export async function requireSubject(path: string, entry: Bytes): Promise<void> {
  const { trust_bundle_jws: jws } = await readPublished(path)
  await subjectOf(entry, jws, path)
}

async function subjectOf(entry: Bytes, jws: string, path: string): Promise<keyof LogProofs> {
  if (equalBytes(entry, utf8(jws))) return 'trust_bundle'
  const content = parseStrictJson(parseCompactJws(jws, DOCUMENT).payload, DOCUMENT)
  const { allowed_identity_tags: tags } = readDocument(tagsSchema, content, DOCUMENT)
  if (tags.includes(await sha256Hex(entry))) return 'manifest'
  throw new ReleaseError(
    `the entry is neither the trust bundle in ${path} nor a manifest that it allows; its proof is not attached`,
  )
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
 * The tree head that a monitor or a witness saw last; the empty tree when there was none.
 * @throws ReleaseError when the file exists but holds no tree head: who starts from the empty tree does not notice that
 *   the log's history has changed
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
