import type { Bytes } from '../../protocol/bytes.ts'
import { readFirmwareTable, readTableNumber } from './firmware-table.ts'
import { LaunchError } from './launch-error.ts'
import { PAGE_BYTES } from './page-chain.ts'

export const SEV_METADATA_GUID = 'dc886566-984a-4798-a75e-5585a7bf67cc'
export const SEV_HASHES_TABLE_GUID = '7255371f-3a3b-4b04-927b-1da6efa8d454'
export const SEV_ES_RESET_BLOCK_GUID = '00f771de-1a7e-4fcb-890e-68c77e2fb44e'

/** The volume is mapped so that it ends at 4 GiB, just below which an x86 processor starts. */
const FOUR_GIB = 0x1_0000_0000

const METADATA_SIGNATURE = 0x56455341 // "ASEV", read as a little-endian number
const METADATA_VERSION = 1
const METADATA_HEADER_BYTES = 16
const METADATA_SECTION_BYTES = 12

/** Sections that the firmware requires before launch, by the number in its metadata. */
const SECTION_KINDS: ReadonlyMap<number, SectionKind> = new Map([
  [0x01, 'zero'],
  [0x02, 'secrets'],
  [0x03, 'cpuid'],
  [0x04, 'svsm-caa'],
  [0x10, 'kernel-hashes'],
])

export type SectionKind = 'zero' | 'secrets' | 'cpuid' | 'svsm-caa' | 'kernel-hashes'

/** A range of guest memory, in whole pages. */
export interface FirmwareSection {
  readonly kind: SectionKind
  /** Guest physical address. */
  readonly address: number
  readonly bytes: number
}

/** The parts of an OVMF volume that matter for the launch digest. */
export interface Firmware {
  readonly volume: Bytes
  /** Guest physical address of the volume's first byte. */
  readonly address: number
  /** In the order of the metadata, which is the order of measurement. */
  readonly sections: readonly FirmwareSection[]
  /** Start address of every processor but the first; absent in firmware that supports only one. */
  readonly resetAddress: number | undefined
  /** Where the firmware reads the digests of kernel, initrd and command line. */
  readonly hashesTableAddress: number | undefined
}

/**
 * Reads an OVMF volume (`OVMF.fd`, or `OVMF_CODE.fd` where variables are separate).
 *
 * Source: edk2, OvmfPkg/ResetVector/X64/OvmfSevMetadata.asm and OvmfPkg/ResetVector/Ia16/ResetVectorVtf0.asm.
 * @throws LaunchError when it is not such a volume, was not built for SEV-SNP, or has sections that this library does
 *   not know: a digest without them would be wrong
 */
export function readFirmware(volume: Bytes): Firmware {
  if (volume.length === 0 || volume.length % PAGE_BYTES !== 0 || volume.length > FOUR_GIB) {
    throw new LaunchError('the firmware is not a whole number of 4 KiB pages')
  }
  const table = readFirmwareTable(volume)
  const metadataFromEnd = readTableNumber(table, SEV_METADATA_GUID)
  if (metadataFromEnd === undefined) {
    throw new LaunchError('the firmware has no SEV metadata: it was not built for SEV-SNP')
  }
  const firmware: Firmware = {
    volume,
    address: FOUR_GIB - volume.length,
    sections: readSections(volume, volume.length - metadataFromEnd),
    resetAddress: readTableNumber(table, SEV_ES_RESET_BLOCK_GUID),
    hashesTableAddress: readTableNumber(table, SEV_HASHES_TABLE_GUID) || undefined,
  }
  return firmware
}

function readSections(volume: Bytes, start: number): FirmwareSection[] {
  if (start < 0 || start + METADATA_HEADER_BYTES > volume.length) throw brokenMetadata()
  const view = new DataView(volume.buffer, volume.byteOffset + start, volume.length - start)
  const length = view.getUint32(4, true)
  const count = view.getUint32(12, true)
  const known =
    view.getUint32(0, true) === METADATA_SIGNATURE &&
    view.getUint32(8, true) === METADATA_VERSION &&
    length <= view.byteLength &&
    METADATA_HEADER_BYTES + count * METADATA_SECTION_BYTES <= length
  if (!known) throw brokenMetadata()

  return Array.from({ length: count }, (_, index) => {
    const offset = METADATA_HEADER_BYTES + index * METADATA_SECTION_BYTES
    return readSection(
      view.getUint32(offset, true),
      view.getUint32(offset + 4, true),
      view.getUint32(offset + 8, true),
    )
  })
}

/**
 * Reads a metadata section. By the ABI, secrets and CPUID take one page each; other sections have the stated length.
 * @throws LaunchError when the section is of an unknown type, or does not consist of whole pages
 */
export function readSection(address: number, bytes: number, type: number): FirmwareSection {
  const kind = SECTION_KINDS.get(type)
  if (kind === undefined) {
    throw new LaunchError(`the firmware has a metadata section of unknown type ${type}`)
  }
  const single = kind === 'secrets' || kind === 'cpuid' || kind === 'kernel-hashes'
  const wholePages = address % PAGE_BYTES === 0 && bytes % PAGE_BYTES === 0 && bytes > 0
  if (!wholePages || (single && bytes !== PAGE_BYTES)) throw brokenMetadata()
  return { kind, address, bytes }
}

function brokenMetadata(): LaunchError {
  return new LaunchError("the firmware's SEV metadata is broken")
}
