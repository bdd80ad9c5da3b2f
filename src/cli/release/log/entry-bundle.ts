import { concatBytes, type Bytes } from '../../../protocol/bytes.ts'

/** Entries of a log in one file, each after its length (c2sp.org/tlog-tiles, "Log entries"). */

/** A length is two bytes. */
export const MAX_ENTRY_BYTES = 0xffff

const LENGTH_BYTES = 2

/** @param entry at most `MAX_ENTRY_BYTES` long */
export function prefixEntry(entry: Uint8Array): Bytes {
  const length = new Uint8Array(LENGTH_BYTES)
  new DataView(length.buffer).setUint16(0, entry.length)
  return concatBytes(length, entry)
}

/** The entries of a bundle. A truncated last entry is omitted, so callers must compare their number. */
export function splitEntries(bundle: Bytes): Bytes[] {
  const view = new DataView(bundle.buffer, bundle.byteOffset, bundle.length)
  const entries: Bytes[] = []
  let at = 0
  while (at + LENGTH_BYTES <= bundle.length) {
    const end = at + LENGTH_BYTES + view.getUint16(at)
    if (end > bundle.length) break
    entries.push(bundle.slice(at + LENGTH_BYTES, end))
    at = end
  }
  return entries
}
