import { messageOfThrown } from '../../protocol/thrown-message.ts'

/**
 * Replaces a file, and reports a failure, as on a full disk, instead of throwing: the state that the file describes is
 * in effect all the same, and must not count as failed.
 */
export function replaceOrReport(
  file: string,
  write: () => void,
  tell: (text: string) => void,
): void {
  try {
    write()
  } catch (error) {
    const reason = messageOfThrown(error)
    tell(`${file} stays as it was: ${reason}`)
  }
}
