import { toHex, type Bytes } from '../../protocol/bytes.ts'
import { CaptureError } from './capture-error.ts'

/** Certificates in DER that the host supplied with a report. */
export type CertificateTable = Partial<Record<TableEntry, Bytes>>

export type TableEntry = 'vcek' | 'vlek' | 'ask' | 'ark' | 'crl'

/** GUIDs of the entries (AMD 56421, GHCB section 4.1.8.1); `ask` is also used for an ASVK. */
const GUIDS: Readonly<Record<TableEntry, string>> = {
  vcek: '63da758d-e664-4564-adc5-f4b93be8accd',
  vlek: 'a8074bc2-a25a-483e-aae6-39c045a0b8a1',
  ask: '4ab7b379-bbac-4fe4-a02f-05aef327c782',
  ark: 'c0b406a4-a803-4952-9743-3fb6014cd0ae',
  crl: '92f81bc3-5811-4d3d-97ff-d19f88dc67ea',
}

const GUID_BYTES = 16
const ENTRY_BYTES = 24

/**
 * Reads the table: entries of GUID, offset and length, and a zero entry as the end. An empty blob is an empty table;
 * unknown entries are skipped.
 * @throws CaptureError when an entry lies outside the table or is given twice
 */
export function readCertificateTable(blob: Bytes): CertificateTable {
  if (blob.length === 0) return {}
  const entries = readEntries(blob)
  const headerBytes = (entries.length + 1) * ENTRY_BYTES
  const table: CertificateTable = {}
  for (const { guid, offset, length } of entries) {
    if (offset < headerBytes || offset + length > blob.length) {
      throw new CaptureError('bad_certificates', 'an entry lies outside the table')
    }
    const name = NAMES.get(guid)
    if (name === undefined || length === 0) continue
    if (table[name] !== undefined) throw new CaptureError('bad_certificates', `${name} given twice`)
    table[name] = blob.slice(offset, offset + length)
  }
  return table
}

interface Entry {
  readonly guid: string
  readonly offset: number
  readonly length: number
}

function readEntries(blob: Bytes): Entry[] {
  const view = new DataView(blob.buffer, blob.byteOffset, blob.byteLength)
  const entries: Entry[] = []
  for (let at = 0; at + ENTRY_BYTES <= blob.length; at += ENTRY_BYTES) {
    const raw = blob.subarray(at, at + ENTRY_BYTES)
    if (raw.every((byte) => byte === 0)) return entries
    entries.push({
      guid: toHex(raw.subarray(0, GUID_BYTES)),
      offset: view.getUint32(at + GUID_BYTES, true),
      length: view.getUint32(at + GUID_BYTES + 4, true),
    })
  }
  throw new CaptureError('bad_certificates', 'the table has no end')
}

/** Hosts write GUIDs in the byte order of RFC 4122, or with the first three parts little-endian. */
const NAMES: ReadonlyMap<string, TableEntry> = new Map(
  Object.entries(GUIDS).flatMap(([name, guid]) => {
    const digits = guid.replaceAll('-', '')
    return isEntry(name) ? [[digits, name] as const, [swapped(digits), name] as const] : []
  }),
)

function isEntry(name: string): name is TableEntry {
  return Object.hasOwn(GUIDS, name)
}

function swapped(digits: string): string {
  const reversed = (from: number, to: number) =>
    (digits.slice(from, to).match(/../g) ?? []).toReversed().join('')
  return `${reversed(0, 8)}${reversed(8, 12)}${reversed(12, 16)}${digits.slice(16)}`
}
