import {
  parseNoteKey,
  type NoteKey,
  type NoteKeyType,
} from '../../../verify/transparency/signed-note.ts'
import { ReleaseError } from '../release-error.ts'
import { readSigner } from './log-files.ts'
import type { NoteSigner } from './note-signer.ts'

/** Who signs with each type of key. */
const HOLDER: Readonly<Record<NoteKeyType, string>> = { ed25519: 'log', cosignature: 'witness' }

/**
 * Reads a verifier key of one type.
 * @throws ReleaseError when it is a key of the other type
 * @throws TransparencyError (`malformed_key`) when it is not a verifier key
 */
export function keyOfType(text: string, type: NoteKeyType): NoteKey {
  const key = parseNoteKey(text)
  requireType(key, type)
  return key
}

/**
 * Reads a private key of one type from a file.
 * @throws ReleaseError when it is a key of the other type, or the file cannot be used
 */
export async function signerOfType(path: string, type: NoteKeyType): Promise<NoteSigner> {
  const signer = await readSigner(path)
  requireType(signer.key, type)
  return signer
}

/** No relying party accepts what a key of the other type signs. */
function requireType({ name, type }: NoteKey, wanted: NoteKeyType): void {
  if (type === wanted) return
  throw new ReleaseError(
    `the key of ${name} is that of a ${HOLDER[type]}, and not of a ${HOLDER[wanted]}`,
  )
}
