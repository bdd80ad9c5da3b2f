import { createHash } from 'node:crypto'
import { encode } from 'cborg'
import {
  concatBytes,
  copyBytes,
  toBase64,
  toHex,
  utf8,
  type Bytes,
} from '../../src/protocol/bytes.ts'
import { filesOf } from './synthetic-dstack-snp.ts'
import { sha256Of } from './synthetic-intel.ts'
import { register } from './synthetic-tdx.ts'

/** A release of the dstack OS on a machine with TDX, and what its registers come to, computed apart from the verifier. */

type Json = Record<string, unknown>

export const sha384Of = (...parts: readonly (Uint8Array | string)[]): Bytes => {
  const hash = createHash('sha384')
  for (const part of parts) hash.update(part)
  return copyBytes(hash.digest())
}

const extend = (digests: readonly Uint8Array[]) =>
  digests.reduce<Bytes>((value, digest) => sha384Of(value, digest), new Uint8Array(48))

const KERNEL = register(0x21)
const COMMAND_LINE = register(0x22)
const INITRD = register(0x23)
export const SINGLE_PASS = register(0x24)
export const TWO_PASS = register(0x25)

/** Firmware memory: 3 pages from 0x809000 (the list is there), 2 from 0x810000. */
const WITNESS = Uint8Array.of(0x89, 0x10, 0, 2, 0, 3, 7, 2)

export const MEMORY = 0x8000_0000

/** `measurement.tdx.cbor` of the release. */
export function tdxImage(change: { image?: Json; tdvf?: Json; top?: Json } = {}): Bytes {
  return copyBytes(
    encode({
      version: 3,
      image: {
        cmdline_sha384: COMMAND_LINE,
        kernel_authenticode: KERNEL,
        initrd_sha384: INITRD,
        ...change.image,
      },
      tdvf: {
        ovmf: 'pre202505',
        mrtd: { single_pass: SINGLE_PASS, two_pass: TWO_PASS },
        td_hob: WITNESS,
        ...change.tdvf,
      },
      ...change.top,
    }),
  )
}

/** The configuration of a machine with that release, and the release's hash. */
export function tdxConfig(change: Json = {}, image = tdxImage()) {
  const list = filesOf({ 'measurement.tdx.cbor': image })
  return {
    osImageHash: toHex(sha256Of(list)),
    vmConfig: {
      memory_size: MEMORY,
      tdx_measurement: { checksum_file: toBase64(list), measurement: toBase64(image) },
      ...change,
    },
  }
}

const ACPI = ['acpi-loader', 'acpi-rsdp', 'acpi-tables'].map((event, index) => ({
  imr: 0,
  event_type: 10,
  digest: toHex(register(0x30 + index)),
  event,
  event_payload: '414350492044415441',
}))

/** The events of RTMR0 that name the digests of ACPI tables, as a guest logs them. */
export const ACPI_EVENTS: readonly Json[] = ACPI

/** MRTD and the first three registers of a machine with two resource lists of memory, by the tables of UEFI. */
export function tdxRegisters(memory = MEMORY) {
  const variables = ['SecureBoot', 'PK', 'KEK', 'db', 'dbx'].map((name) => {
    const guid = name.startsWith('d')
      ? 'cbb219d73a3d9645a3bcdad00e67656f'
      : '61dfe48bca93d211aa0d00e098032b8c'
    const length = Buffer.alloc(16)
    length.writeUInt32LE(name.length)
    return sha384Of(Buffer.from(guid, 'hex'), length, Buffer.from(name, 'utf16le'))
  })
  const rtMr0 = extend([
    sha384Of(memoryList(memory)),
    Buffer.from(
      '344bc51c980ba621aaa00da3ed7436f7d6e549197dfe699515dfa2c6583d95e6412af21c097d473155875ffd561d6790',
      'hex',
    ),
    ...variables,
    sha384Of(new Uint8Array(4)),
    ...ACPI.map(({ digest }) => Buffer.from(digest, 'hex')),
    sha384Of(new Uint8Array(2)),
    Buffer.from(
      '23ada07f5261f12f34a0bd8e46760962d6b4d576a416f1fea1c64bc656b1d28eacf7047ae6e967c58fd2a98bfa74c298',
      'hex',
    ),
  ])
  const rtMr1 = extend([
    KERNEL,
    sha384Of('Calling EFI Application from Boot Option'),
    sha384Of(new Uint8Array(4)),
    sha384Of('Exit Boot Services Invocation'),
    sha384Of('Exit Boot Services Returned with Success'),
  ])
  return { mrTd: SINGLE_PASS, rtMr0, rtMr1, rtMr2: extend([COMMAND_LINE, INITRD]) }
}

/** The list as written out by hand: unaccepted memory, the firmware's two ranges, the rest. */
function memoryList(memory: number): Bytes {
  const rest: [number, number, number][] =
    memory > 0xb000_0000
      ? [
          [7, 0x812000, 0x8000_0000 - 0x812000],
          [7, 0x1_0000_0000, memory - 0x8000_0000],
        ]
      : [[7, 0x812000, memory - 0x812000]]
  const rows: [number, number, number][] = [
    [7, 0, 0x809000],
    [0, 0x809000, 0x3000],
    [7, 0x80c000, 0x4000],
    [0, 0x810000, 0x2000],
    ...rest,
  ]
  const header = Buffer.alloc(56)
  header.writeUInt16LE(1, 0)
  header.writeUInt16LE(56, 2)
  header.writeUInt32LE(9, 8)
  header.writeBigUInt64LE(BigInt(0x809000 + 56 + 48 * rows.length + 8), 48)
  const blocks = rows.map(([type, start, length]) => {
    const block = Buffer.alloc(48)
    block.writeUInt16LE(3, 0)
    block.writeUInt16LE(48, 2)
    block.writeUInt32LE(type, 24)
    block.writeUInt32LE(7, 28)
    block.writeBigUInt64LE(BigInt(start), 32)
    block.writeBigUInt64LE(BigInt(length), 40)
    return block
  })
  return concatBytes(header, ...blocks, utf8(''))
}
