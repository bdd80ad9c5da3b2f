import { connect } from 'node:net'
import { text } from 'node:stream/consumers'

/** The answers of PID 1 to a request for the data disk (image/init/volume.c). */
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

/** Creating the file system of a large disk takes minutes. */
const TIMEOUT_MS = 600_000

/**
 * Asks PID 1, which listens on this socket, to decrypt and mount the data disk.
 * @param request `format` first makes a file system on a blank disk
 * @param key the key of its sectors, hex
 * @throws Error when PID 1 does not answer, or gives an unknown answer
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
