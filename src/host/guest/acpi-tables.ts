import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** ACPI's machine code (AML) in the tables that the host handed to the kernel. */
export interface AcpiTable {
  readonly name: string
  readonly bytes: Uint8Array
}

/** What AML of the host can reach, as far as the tables tell. */
export interface AcpiReport {
  readonly event: 'acpi_tables'
  /** SHA-256 over the tables in the order of their names, to be compared between hosts and starts. */
  readonly sha256: string
  readonly tables: number
  /** How many operation regions they declare, by address space. */
  readonly regions: Readonly<Record<string, number>>
}

/** ACPI 6.5, 20.2.5.2: DefOpRegion := ExtOpPrefix OpRegionOp NameString RegionSpace RegionOffset RegionLen. */
const EXT_OP = 0x5b
const OP_REGION = 0x80

/** ACPI 6.5, 5.5.2.4. */
const SPACES = [
  'system_memory',
  'system_io',
  'pci_config',
  'embedded_control',
  'smbus',
  'cmos',
  'pci_bar',
  'ipmi',
  'gpio',
  'serial_bus',
  'platform_channel',
]

export function readTables(directory: string): AcpiTable[] {
  const names = readdirSync(directory).toSorted()
  return names.map((name) => ({ name, bytes: readFileSync(join(directory, name)) }))
}

/**
 * A count of what the tables declare, and not a defence: the kernel has run their code before anything could look at
 * them, and code can make further regions.
 */
export function describeTables(tables: readonly AcpiTable[]): AcpiReport {
  const hash = createHash('sha256')
  const regions: Record<string, number> = {}
  for (const { bytes } of tables) {
    hash.update(bytes)
    for (const space of regionSpaces(bytes)) regions[space] = (regions[space] ?? 0) + 1
  }
  return { event: 'acpi_tables', sha256: hash.digest('hex'), tables: tables.length, regions }
}

/** The address space of every operation region that is declared. */
function regionSpaces(bytes: Uint8Array): string[] {
  const found: string[] = []
  for (let at = 0; at + 1 < bytes.length; at++) {
    if (bytes[at] !== EXT_OP || bytes[at + 1] !== OP_REGION) continue
    const behind = skipName(bytes, at + 2)
    const space = behind === undefined ? undefined : bytes[behind]
    if (space !== undefined) found.push(SPACES[space] ?? 'other')
  }
  return found
}

const ROOT = 0x5c
const PARENT = 0x5e
const DUAL_NAME = 0x2e
const MULTI_NAME = 0x2f
const SEGMENT_BYTES = 4

/** Where a NameString (20.2.2) ends that begins here; undefined where none does. */
function skipName(bytes: Uint8Array, from: number): number | undefined {
  let at = from
  while (bytes[at] === ROOT || bytes[at] === PARENT) at++
  const prefix = bytes[at]
  const [head, segments] =
    prefix === DUAL_NAME ? [1, 2] : prefix === MULTI_NAME ? [2, bytes[at + 1] ?? 0] : [0, 1]
  const names = bytes.subarray(at + head, at + head + segments * SEGMENT_BYTES)
  const whole = names.length === segments * SEGMENT_BYTES
  return whole && names.every(isNameByte) ? at + head + names.length : undefined
}

function isNameByte(byte: number): boolean {
  return (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x30 && byte <= 0x39) || byte === 0x5f
}
