import { fromUtf8, type Bytes } from '../../../protocol/bytes.ts'
import { parseNote, type SignedNote } from '../../../verify/transparency/signed-note.ts'
import { TransparencyError } from '../../../verify/transparency/transparency-error.ts'

/**
 * Parses the signed note in a file of a log.
 * @throws TransparencyError with `malformed_checkpoint` when the file holds no signed note
 */
export function readNote(bytes: Bytes): SignedNote {
  let text: string
  try {
    text = fromUtf8(bytes)
  } catch (cause) {
    throw new TransparencyError('malformed_checkpoint', 'the checkpoint is not UTF-8', { cause })
  }
  return parseNote(text)
}
