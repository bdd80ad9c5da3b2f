import { readFile } from 'node:fs/promises'
import { copyBytes, type Bytes } from '../../protocol/bytes.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { publishedTrustBundleSchema } from '../../protocol/trust-bundle.ts'
import { InputError } from './input-error.ts'

const MAX_INPUT_BYTES = 256 * 1024 * 1024

/**
 * The bytes of a file, or of standard input for `-`.
 * @throws InputError when it cannot be read or is too large
 */
export async function readInput(path: string): Promise<Bytes> {
  try {
    const bytes = path === '-' ? await readStandardInput() : await readFile(path)
    return copyBytes(bytes)
  } catch (error) {
    if (error instanceof InputError) throw error
    throw new InputError(`cannot read ${path}: ${codeOf(error)}`, { cause: error })
  }
}

/**
 * The text of a file.
 * @throws InputError when it cannot be read
 */
export async function readText(path: string): Promise<string> {
  return new TextDecoder().decode(await readInput(path))
}

/**
 * A JSON file.
 * @throws InputError when it cannot be read
 * @throws MalformedEvidence when it is not JSON
 */
export async function readJson(path: string): Promise<unknown> {
  return parseStrictJson(await readInput(path), `file ${path}`)
}

/**
 * A JWS bare or as published, `{"trust_bundle_jws": ...}`.
 * @throws InputError when an input cannot be used
 * @throws MalformedEvidence when the input is malformed
 */
export async function readBundle(path: string): Promise<string> {
  const text = (await readText(path)).trim()
  if (!text.startsWith('{')) return text
  const published = publishedTrustBundleSchema.safeParse(parseStrictJson(text, `file ${path}`))
  if (!published.success) throw new InputError(`${path} holds no trust_bundle_jws`)
  return published.data.trust_bundle_jws
}

async function readStandardInput(): Promise<Buffer> {
  const parts: Buffer[] = []
  let size = 0
  for await (const part of process.stdin) {
    const bytes = Buffer.from(part)
    size += bytes.length
    if (size > MAX_INPUT_BYTES) throw new InputError('standard input is too large')
    parts.push(bytes)
  }
  return Buffer.concat(parts)
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
}
