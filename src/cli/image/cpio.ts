import { concatBytes, utf8, type Bytes } from '../../protocol/bytes.ts'

/** A file or, without bytes, a directory; the path has no slash at its start. */
export interface CpioEntry {
  readonly path: string
  readonly mode: number
  readonly bytes?: Bytes
}

const DIRECTORY = 0o040000
const FILE = 0o100000
const ALIGNMENT = 4

/**
 * A cpio archive in the format of the kernel's initial file system ("newc"), sorted by path, owned by root and with one
 * time stamp: the same entries give the same bytes.
 *
 * Source: Linux, Documentation/driver-api/early-userspace/buffer-format.rst.
 */
export function writeCpio(entries: readonly CpioEntry[], epoch: number): Bytes {
  const sorted = entries.toSorted((left, right) => (left.path < right.path ? -1 : 1))
  const records = sorted.map((entry, index) => record(entry, index + 1, epoch))
  const end = record({ path: 'TRAILER!!!', mode: 0 }, 0, 0, 0)
  return concatBytes(...records, end)
}

function record(
  { path, mode, bytes }: CpioEntry,
  inode: number,
  time: number,
  type = bytes === undefined ? DIRECTORY : FILE,
): Bytes {
  const name = utf8(`${path}\0`)
  const links = type === DIRECTORY ? 2 : 1
  const size = bytes?.length ?? 0
  // Inode, mode, user, group, links, time, size, device, special device (two numbers each), name's length, check.
  const numbers = [inode, type | mode, 0, 0, links, time, size, 0, 0, 0, 0, name.length, 0]
  const header = utf8(`070701${numbers.map(hex8).join('')}`)
  return concatBytes(padded(concatBytes(header, name)), padded(bytes ?? new Uint8Array()))
}

function hex8(value: number): string {
  return value.toString(16).padStart(8, '0')
}

function padded(bytes: Bytes): Bytes {
  return concatBytes(bytes, new Uint8Array(-bytes.length & (ALIGNMENT - 1)))
}
