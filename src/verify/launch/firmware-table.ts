import { equalBytes, toHex, type Bytes } from '../../protocol/bytes.ts'
import { guidBytes } from './guid.ts'
import { LaunchError } from './launch-error.ts'

/** GUID of the table itself; its entry is the last one, so that a reader can start at the end. */
export const TABLE_FOOTER_GUID = '96b582de-1fb2-45f7-baea-a366c55a082d'

/** The reset vector occupies the bytes after the table, to the end of the volume. */
export const BYTES_AFTER_TABLE = 32

/** Bytes after an entry's data: the entry's total length (2 bytes) and its GUID (16 bytes). */
export const ENTRY_TRAILER_BYTES = 18

/** The data of the table's entries, by GUID in hex as stored. */
export type FirmwareTable = ReadonlyMap<string, Bytes>

/**
 * Reads the table of GUIDs at the end of an OVMF volume. It is read from the end: every entry has its length and its
 * GUID after its data.
 *
 * Source: edk2, OvmfPkg/ResetVector (the assembly defines the table's layout).
 * @throws LaunchError when there is no table, or it is invalid or has a GUID twice
 */
export function readFirmwareTable(volume: Bytes): FirmwareTable {
  const tableEnd = volume.length - BYTES_AFTER_TABLE
  const footer = tableEnd < ENTRY_TRAILER_BYTES ? undefined : readTrailer(volume, tableEnd)
  if (footer === undefined || !equalBytes(footer.guid, guidBytes(TABLE_FOOTER_GUID))) {
    throw new LaunchError('the firmware has no table of GUIDs at its end: is it OVMF?')
  }
  const tableStart = tableEnd - footer.length
  if (tableStart < 0 || footer.length < ENTRY_TRAILER_BYTES) throw brokenTable()

  const entries = new Map<string, Bytes>()
  let end = tableEnd - ENTRY_TRAILER_BYTES
  while (end > tableStart) {
    if (end - tableStart < ENTRY_TRAILER_BYTES) throw brokenTable()
    const { length, guid } = readTrailer(volume, end)
    const start = end - length
    if (length < ENTRY_TRAILER_BYTES || start < tableStart) throw brokenTable()
    const name = toHex(guid)
    if (entries.has(name)) throw brokenTable()
    entries.set(name, volume.slice(start, end - ENTRY_TRAILER_BYTES))
    end = start
  }
  return entries
}

/**
 * The 32-bit number at the start of an entry, or `undefined` when there is no such entry. Later versions may append to
 * an entry.
 */
export function readTableNumber(table: FirmwareTable, guid: string): number | undefined {
  const data = table.get(toHex(guidBytes(guid)))
  if (data === undefined) return undefined
  if (data.length < 4) throw brokenTable()
  return new DataView(data.buffer).getUint32(0, true)
}

function readTrailer(volume: Bytes, end: number): { length: number; guid: Bytes } {
  const start = end - ENTRY_TRAILER_BYTES
  return {
    length: new DataView(volume.buffer, volume.byteOffset).getUint16(start, true),
    guid: volume.slice(start + 2, end),
  }
}

function brokenTable(): LaunchError {
  return new LaunchError("the firmware's table of GUIDs is broken")
}
