import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { fromBase64, fromUtf8, utf8, type Bytes } from '../../../protocol/bytes.ts'
import { emptyRoot, type TreeHead } from '../../../verify/transparency/merkle.ts'
import { ReleaseError } from '../release-error.ts'
import type { ReadLogFile } from './audit-log.ts'
import { parseNoteSigner, type NoteSigner } from './note-signer.ts'

const stateSchema = z.object({ size: z.int().min(0), root: z.base64() })

/** The entry is the document's text without white space around it, whichever form it is kept in. */
export async function readEntry(path: string): Promise<Bytes> {
  const text = fromUtf8(await readFile(path)).trim()
  return utf8(bundleOf(text) ?? text)
}

/** The compact JWS inside a published trust bundle. */
function bundleOf(text: string): string | undefined {
  if (!text.startsWith('{')) return undefined
  const published = z.object({ trust_bundle_jws: z.string() }).safeParse(JSON.parse(text))
  return published.data?.trust_bundle_jws
}

/** @throws ReleaseError where others could have read the key */
export async function readSigner(path: string): Promise<NoteSigner> {
  const { mode } = await stat(path)
  if ((mode & 0o077) !== 0) {
    throw new ReleaseError(`${path}: others may read or change this private key; chmod 600 it`)
  }
  return parseNoteSigner(fromUtf8(await readFile(path)))
}

/** What an audit saw before; the empty tree where there was none. */
export async function readTreeHead(path: string): Promise<TreeHead> {
  const text = await readFile(path, 'utf8').catch(() => undefined)
  if (text === undefined) return { size: 0, root: emptyRoot() }
  const { size, root } = stateSchema.parse(JSON.parse(text))
  return { size, root: fromBase64(root) }
}

/** Files of a log, from a folder or over HTTPS. */
export function logReader(prefix: string): ReadLogFile {
  if (!/^https?:\/\//.test(prefix)) {
    return async (path) => new Uint8Array(await readFile(join(prefix, path)))
  }
  return async (path) => {
    const response = await fetch(`${prefix.replace(/\/$/, '')}/${path}`, { redirect: 'error' })
    if (!response.ok)
      throw new ReleaseError(`the log answers ${path} with status ${response.status}`)
    return new Uint8Array(await response.arrayBuffer())
  }
}
