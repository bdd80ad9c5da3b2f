import { toBase64, type Bytes } from '../../protocol/bytes.ts'

/** A file that the user dropped or chose; its bytes are in base64, so that a form can be restored after a reload. */
export interface UserFile {
  readonly name: string
  readonly base64: string
  readonly bytes: number
}

/** The kind of a file, by its content alone. */
export type FileKind =
  | 'receipt'
  | 'keys'
  | 'root'
  | 'bundle'
  | 'policy'
  | 'logPolicy'
  | 'crl'
  | 'other'

const MAX_BYTES = 16 * 1024 * 1024

/** @throws RangeError when it is larger than any genuine document */
export async function readUserFile(file: File): Promise<UserFile> {
  if (file.size > MAX_BYTES) throw new RangeError(`${file.name} is larger than 16 MiB.`)
  const bytes = new Uint8Array(await file.arrayBuffer())
  return { name: file.name, base64: toBase64(bytes), bytes: bytes.length }
}

/** The kind of a dropped file; anything unknown counts as evidence, identified by its digest. */
export function kindOf(bytes: Bytes): FileKind {
  if (bytes[0] === DER_SEQUENCE) return 'crl'
  const text = new TextDecoder().decode(bytes).trim()
  if (JWS.test(text)) return kindOfJws(text)
  const members = membersOf(text)
  return KINDS.find(([, needed]) => needed.every((name) => name in members))?.[0] ?? 'other'
}

const DER_SEQUENCE = 0x30
const JWS = /^[\w-]+\.[\w-]+\.[\w-]+$/

const KINDS: readonly (readonly [FileKind, readonly string[]])[] = [
  ['receipt', ['id', 'receipt']],
  ['keys', ['keys']],
  ['root', ['kty', 'crv', 'x', 'y']],
  ['bundle', ['trust_bundle_jws']],
  ['policy', ['adapter']],
  ['logPolicy', ['log', 'quorum']],
]

function kindOfJws(text: string): FileKind {
  try {
    const header = atob((text.split('.')[0] ?? '').replaceAll('-', '+').replaceAll('_', '/'))
    return header.includes('trust-bundle+jwt') ? 'bundle' : 'receipt'
  } catch {
    return 'receipt'
  }
}

function membersOf(text: string): object {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}
