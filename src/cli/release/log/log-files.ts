import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { fromBase64, fromUtf8, utf8, type Bytes } from '../../../protocol/bytes.ts'
import { publishedTrustBundleSchema } from '../../../protocol/trust-bundle.ts'
import { emptyRoot, type TreeHead } from '../../../verify/transparency/merkle.ts'
import { writeDocument } from '../files.ts'
import { ReleaseError } from '../release-error.ts'
import type { ReadLogFile } from './audit-log.ts'
import { parseNoteSigner, type NoteSigner } from './note-signer.ts'

const stateSchema = z.object({ size: z.int().min(0), root: z.base64() })

/** The entry is the document's text without surrounding white space, in whichever form it is stored. */
export async function readEntry(path: string): Promise<Bytes> {
  const text = fromUtf8(await readFile(path)).trim()
  return utf8(bundleOf(text) ?? text)
}

/**
 * Adds the proof of a document to the published trust bundle: as the bundle's own where the document is that bundle,
 * else as the manifest's.
 * @throws ReleaseError when the file is not a published trust bundle
 */
export async function attachProof(path: string, entry: Bytes, proof: string): Promise<void> {
  const parsed = publishedTrustBundleSchema.safeParse(JSON.parse(await readFile(path, 'utf8')))
  if (!parsed.success) throw new ReleaseError(`${path} is no published trust bundle`)
  const { trust_bundle_jws: jws, log_proofs: proofs } = parsed.data
  const subject = fromUtf8(entry) === jws ? 'trust_bundle' : 'manifest'
  const document = { ...parsed.data, log_proofs: { ...proofs, [subject]: proof } }
  await writeDocument(path, `${JSON.stringify(document)}\n`)
}

/** The compact JWS inside a published trust bundle. */
function bundleOf(text: string): string | undefined {
  if (!text.startsWith('{')) return undefined
  const published = publishedTrustBundleSchema.safeParse(JSON.parse(text))
  return published.data?.trust_bundle_jws
}

/** @throws ReleaseError when others could have read the key */
export async function readSigner(path: string): Promise<NoteSigner> {
  const { mode } = await stat(path)
  if ((mode & 0o077) !== 0) {
    throw new ReleaseError(`${path}: others may read or change this private key; chmod 600 it`)
  }
  return parseNoteSigner(fromUtf8(await readFile(path)))
}

/**
 * The tree head of the previous audit; the empty tree where there was none.
 * @throws ReleaseError when there is a file that does not hold one: an audit that began anew would notice no other history
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

/** Files of a log, from a folder or over HTTPS. */
export function logReader(prefix: string): ReadLogFile {
  if (!/^https?:\/\//.test(prefix)) {
    return async (path) => new Uint8Array(await readFile(join(prefix, path)))
  }
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
