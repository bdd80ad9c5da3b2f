import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A table with ACPI machine code (AML) that the host handed to the kernel. */
export interface AcpiTable {
  readonly name: string
  readonly bytes: Uint8Array
}

/** What the host's AML can access, as far as the tables declare it. */
export interface AcpiReport {
  readonly event: 'acpi_tables'
  /** SHA-256 over the tables in the order of their names, for comparison between hosts and starts. */
  readonly sha256: string
  readonly tables: number
  /** How many operation regions the tables declare, by address space. */
  readonly regions: Readonly<Record<string, number>>
  /** The regions in memory whose place is a constant in the table: `address+length`, hex. */
  readonly memory: readonly string[]
  /** How many regions in memory have a place that the code computes when it runs. */
  readonly computed: number
}

/** Bytes of physical memory from `start` up to but not including `end`. */
export interface MemoryRange {
  readonly start: bigint
  readonly end: bigint
}

interface Region {
  readonly space: string
  /** Undefined when the AML code computes the value. */
  readonly range: MemoryRange | undefined
}

/** ACPI 6.5, 20.2.5.2: DefOpRegion := ExtOpPrefix OpRegionOp NameString RegionSpace RegionOffset RegionLen. */
const EXT_OP = 0x5b
const OP_REGION = 0x80

const MEMORY = 'system_memory'

/** ACPI 6.5, 5.5.2.4. */
const SPACES = [
  MEMORY,
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
 * Counts what the tables declare. This is a report, not a defence: the kernel has already run the tables' code, and
 * code can create further regions.
 */
export function describeTables(tables: readonly AcpiTable[]): AcpiReport {
  const hash = createHash('sha256')
  for (const { bytes } of tables) hash.update(bytes)
  const declared = tables.flatMap(({ bytes }) => regionsIn(bytes))
  const regions: Record<string, number> = {}
  for (const { space } of declared) regions[space] = (regions[space] ?? 0) + 1
  const ranges = memoryRanges(declared)
  return {
    event: 'acpi_tables',
    sha256: hash.digest('hex'),
    tables: tables.length,
    regions,
    memory: ranges.map(({ start, end }) => `${start.toString(16)}+${(end - start).toString(16)}`),
    computed: (regions[MEMORY] ?? 0) - ranges.length,
  }
}

/**
 * Whether a table declares the guest's own memory as an operation region, for which an honest host has no reason.
 * @param iomem the text of /proc/iomem as root reads it
 */
export function claimsGuestMemory(tables: readonly AcpiTable[], iomem: string): boolean {
  const own = systemRam(iomem)
  const claimed = memoryRanges(tables.flatMap(({ bytes }) => regionsIn(bytes)))
  return claimed.some(({ start, end }) => own.some((ram) => start < ram.end && ram.start < end))
}

/** Lines such as `00100000-7ffdffff : System RAM`; ranges nested in one are indented. */
const RAM_LINE = /^([0-9a-f]+)-([0-9a-f]+) : System RAM$/gm

function systemRam(iomem: string): MemoryRange[] {
  return [...iomem.matchAll(RAM_LINE)].map(([, from = '0', to = '0']) => ({
    start: BigInt(`0x${from}`),
    end: BigInt(`0x${to}`) + 1n,
  }))
}

function memoryRanges(regions: readonly Region[]): MemoryRange[] {
  return regions.flatMap(({ space, range }) =>
    space === MEMORY && range !== undefined ? [range] : [],
  )
}

/** All declared operation regions. */
function regionsIn(bytes: Uint8Array): Region[] {
  const found: Region[] = []
  for (let at = 0; at + 1 < bytes.length; at++) {
    if (bytes[at] !== EXT_OP || bytes[at + 1] !== OP_REGION) continue
    const behind = skipName(bytes, at + 2)
    const space = behind === undefined ? undefined : bytes[behind]
    if (behind === undefined || space === undefined) continue
    found.push({ space: SPACES[space] ?? 'other', range: rangeAt(bytes, behind + 1) })
  }
  return found
}

/** RegionOffset and RegionLen, where both are constants. */
function rangeAt(bytes: Uint8Array, at: number): MemoryRange | undefined {
  const offset = constantAt(bytes, at)
  const length = offset && constantAt(bytes, offset.behind)
  return offset && length && { start: offset.value, end: offset.value + length.value }
}

/** ACPI 6.5, 20.2.3: how many bytes follow the prefix of a constant. */
const CONSTANT_BYTES: ReadonlyMap<number, number> = new Map([
  [0x0a, 1],
  [0x0b, 2],
  [0x0c, 4],
  [0x0e, 8],
])

/** Reads a constant, and where it ends; undefined for any other term. */
function constantAt(bytes: Uint8Array, at: number) {
  const prefix = bytes[at]
  // ZeroOp and OneOp encode their own value.
  if (prefix === 0 || prefix === 1) return { value: BigInt(prefix), behind: at + 1 }
  const size = CONSTANT_BYTES.get(prefix ?? -1)
  if (size === undefined || at + 1 + size > bytes.length) return undefined
  const digits = Buffer.from(bytes.subarray(at + 1, at + 1 + size).toReversed()).toString('hex')
  return { value: BigInt(`0x${digits}`), behind: at + 1 + size }
}

const ROOT = 0x5c
const PARENT = 0x5e
const DUAL_NAME = 0x2e
const MULTI_NAME = 0x2f
const SEGMENT_BYTES = 4

/** The end of the NameString (20.2.2) that starts at this position; undefined if there is none. */
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
