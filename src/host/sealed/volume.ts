import { connect } from 'node:net'
import { text } from 'node:stream/consumers'

/** What PID 1 answers when it was asked for the data disk (image/init/volume.c). */
export const VOLUME_ANSWERS = [
  'ok',
  'missing',
  'too_small',
  'not_blank',
  'damaged',
  'unreadable',
  'format_failed',
  'already_open',
  'malformed',
] as const

export type VolumeAnswer = (typeof VOLUME_ANSWERS)[number]

/** Making the file system of a large disk takes minutes. */
const TIMEOUT_MS = 600_000

/**
 * Asks PID 1, which listens on this socket, to decrypt and mount the data disk.
 * @param request `format` makes a file system on a blank disk first
 * @param key of its sectors, hex
 * @throws Error when it does not answer
 */
export async function askForVolume(
  path: string,
  request: 'open' | 'format',
  key: string,
): Promise<VolumeAnswer> {
  const socket = connect(path)
  socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error('PID 1 does not answer')))
  socket.write(`${request} ${key}\n`)
  const said = (await text(socket)).trim()
  const answer = VOLUME_ANSWERS.find((one) => one === said)
  if (answer === undefined) throw new Error('PID 1 gave an unknown answer')
  return answer
}
