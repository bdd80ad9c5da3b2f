/**
 * The duration of a WebM file from its last block. Browsers record without writing a duration into the header, and their
 * clusters have no size, so every element must be visited (RFC 8794, RFC 9559).
 */

/** Elements whose children are visited; their ends do not matter here. */
const CONTAINER_IDS: ReadonlySet<number> = new Set([
  0x18538067, // Segment
  0x1549a966, // Info
  0x1f43b675, // Cluster
  0xa0, // BlockGroup
])
const TIMESTAMP_SCALE = 0x2ad7b1
const CLUSTER_TIMESTAMP = 0xe7
const BLOCKS: ReadonlySet<number> = new Set([0xa1, 0xa3]) // Block, SimpleBlock

const DEFAULT_SCALE_NS = 1_000_000
const NS_PER_SECOND = 1_000_000_000

/** Elements visited between two pauses: about a millisecond of work. */
const ELEMENTS_PER_SLICE = 20_000

/** Maximum number of elements: two blocks per hundredth of a second for ten hours. A file with more is not measured. */
const MAX_ELEMENTS = 8_000_000

/**
 * The time from the start of the file to the start of the last block, in seconds.
 * @param pause lets other requests run
 * @returns undefined where there is no block, or the file has too many elements
 */
export async function webmSeconds(
  bytes: Uint8Array,
  pause: () => Promise<void>,
): Promise<number | undefined> {
  let scale = DEFAULT_SCALE_NS
  let cluster = 0
  let last: number | undefined
  let at = 0
  for (let elements = 1; at < bytes.length; elements++) {
    if (elements > MAX_ELEMENTS) return undefined
    if (elements % ELEMENTS_PER_SLICE === 0) await pause()
    const id = variableInteger(bytes, at, true)
    const size = id && variableInteger(bytes, id.end, false)
    if (!id || !size) break
    const start = size.end
    const end = start + size.value
    at = CONTAINER_IDS.has(id.value) ? start : end
    if (id.value === TIMESTAMP_SCALE) scale = unsigned(bytes, start, end)
    if (id.value === CLUSTER_TIMESTAMP) cluster = unsigned(bytes, start, end)
    if (BLOCKS.has(id.value)) last = Math.max(last ?? 0, cluster + blockOffset(bytes, start))
  }
  return last === undefined ? undefined : (last * scale) / NS_PER_SECOND
}

interface VariableInteger {
  readonly value: number
  readonly end: number
}

const MAX_INTEGER_BYTES = 8

/** A number whose leading zeros give its length; ids keep the marker bit. */
function variableInteger(
  bytes: Uint8Array,
  at: number,
  keepsMarker: boolean,
): VariableInteger | undefined {
  const first = bytes[at] ?? 0
  const length = Math.clz32(first) - 23
  const end = at + length
  if (length > MAX_INTEGER_BYTES || end > bytes.length) return undefined
  const marker = 1 << (8 - length)
  let value = keepsMarker ? first : first & (marker - 1)
  for (let i = at + 1; i < end; i++) value = value * 256 + (bytes[i] ?? 0)
  return { value, end }
}

function unsigned(bytes: Uint8Array, start: number, end: number): number {
  let value = 0
  for (let i = start; i < Math.min(end, start + MAX_INTEGER_BYTES); i++)
    value = value * 256 + (bytes[i] ?? 0)
  return value
}

/** A block's time within its cluster: 16 bits, signed, after the track number. */
function blockOffset(bytes: Uint8Array, start: number): number {
  const at = variableInteger(bytes, start, false)?.end ?? bytes.length
  return ((((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)) << 16) >> 16
}
