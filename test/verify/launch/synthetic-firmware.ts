import { concatBytes, type Bytes } from '../../../src/protocol/bytes.ts'
import { guidBytes } from '../../../src/verify/launch/guid.ts'
import {
  SEV_ES_RESET_BLOCK_GUID,
  SEV_HASHES_TABLE_GUID,
  SEV_METADATA_GUID,
} from '../../../src/verify/launch/firmware.ts'
import { TABLE_FOOTER_GUID } from '../../../src/verify/launch/firmware-table.ts'

/** Address, bytes and type number of a metadata section. */
export type SectionRow = readonly [address: number, bytes: number, type: number]

export interface FirmwarePlan {
  readonly bytes: number
  readonly sections: readonly SectionRow[]
  readonly resetAddress: number | undefined
  readonly hashesTableAddress: number | undefined
  readonly metadata: boolean
  readonly metadataVersion: number
}

/** Laid out like edk2's OvmfPkg/AmdSev: the same kinds of section, kernel hashes 0x400 into their page. */
export const AMD_SEV_PLAN: FirmwarePlan = {
  bytes: 8192,
  sections: [
    [0x800000, 0x9000, 0x01],
    [0x80a000, 0x3000, 0x01],
    [0x80d000, 0x1000, 0x02],
    [0x80e000, 0x1000, 0x03],
    [0x80f000, 0x1000, 0x04],
    [0x811000, 0x1000, 0x10],
  ],
  resetAddress: 0x80b004,
  hashesTableAddress: 0x811400,
  metadata: true,
  metadataVersion: 1,
}

/** A volume that is not bootable firmware but has its tables, at the expected places. */
export function makeFirmware(change: Partial<FirmwarePlan> = {}): Bytes {
  const plan = { ...AMD_SEV_PLAN, ...change }
  const metadata = makeMetadata(plan)
  const entries = [
    ...(plan.metadata ? [entry(SEV_METADATA_GUID, numbers(1024))] : []),
    ...(plan.hashesTableAddress === undefined
      ? []
      : [entry(SEV_HASHES_TABLE_GUID, numbers(plan.hashesTableAddress, 0x400))]),
    ...(plan.resetAddress === undefined
      ? []
      : [entry(SEV_ES_RESET_BLOCK_GUID, numbers(plan.resetAddress))]),
  ]
  const body = concatBytes(...entries)
  const table = concatBytes(body, trailer(TABLE_FOOTER_GUID, body.length + 18))
  const volume = new Uint8Array(plan.bytes)
  for (let i = 0; i < volume.length; i++) volume[i] = (i * 7) & 0xff
  volume.set(metadata, volume.length - 1024)
  volume.set(table, volume.length - 32 - table.length)
  return volume
}

function makeMetadata({ sections, metadataVersion }: FirmwarePlan): Bytes {
  const rows = concatBytes(...sections.map((row) => numbers(...row)))
  return concatBytes(numbers(0x56455341, 16 + rows.length, metadataVersion, sections.length), rows)
}

function entry(guid: string, data: Bytes): Bytes {
  return concatBytes(data, trailer(guid, data.length + 18))
}

function trailer(guid: string, length: number): Bytes {
  return concatBytes(new Uint8Array([length & 0xff, length >> 8]), guidBytes(guid))
}

function numbers(...values: readonly number[]): Bytes {
  return new Uint8Array(new Uint32Array(values).buffer)
}
