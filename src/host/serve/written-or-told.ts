import { messageOfThrown } from '../../protocol/thrown-message.ts'

/**
 * Replaces a file, and tells it where that fails, as on a full disk: what the file describes is so all the same, and must not count as
 * failed.
 */
export function writtenOrTold(file: string, write: () => void, tell: (text: string) => void): void {
  try {
    write()
  } catch (error) {
    const reason = messageOfThrown(error)
    tell(`${file} stays as it was: ${reason}`)
  }
}
