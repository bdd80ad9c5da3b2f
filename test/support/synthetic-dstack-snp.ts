import { createHash } from 'node:crypto'
import { encode as encodeMessagePack } from '@msgpack/msgpack'
import { encode as encodeCbor } from 'cborg'
import { signSimulatedReport, type ReportFields } from '../../src/enclave/simulated/report.ts'
import type { SimulatedChain } from '../../src/enclave/simulated/chain.ts'
import {
  concatBytes,
  copyBytes,
  fromHex,
  toBase64,
  toHex,
  utf8,
  type Bytes,
} from '../../src/protocol/bytes.ts'
import { addPages, EMPTY_LAUNCH } from '../../src/verify/launch/page-chain.ts'
import { readFirmware } from '../../src/verify/launch/firmware.ts'
import { makeFirmware } from '../verify/launch/synthetic-firmware.ts'
import { COMPOSE_HASH } from './synthetic-dstack.ts'
import { sha256Of } from './synthetic-intel.ts'

/** A dstack guest under SEV-SNP; tests change one thing at a time. */

/** What sev-snp-measure 0.0.13, an independent tool, computes for this release on four processors. */
export const SNP_LAUNCH =
  '46704c5b666bda42822d2b63c25c79ba907efea56d25a77ba31b62c840dd6158dbb18df2d6157665e2d626dcdef06d24'

export const MR_CONFIG = JSON.stringify({
  app_id: 'aa'.repeat(20),
  compose_hash: COMPOSE_HASH,
  instance_id: 'bb'.repeat(20),
  key_provider: 'kms',
  key_provider_id: '3059',
  version: 3,
})

type Json = Record<string, unknown>

/** `measurement.snp.cbor` of the release. */
export async function snpImage(change: Json = {}): Promise<Bytes> {
  const firmware = readFirmware(makeFirmware())
  return copyBytes(
    encodeCbor({
      version: 3,
      cmdline: 'console=ttyS0 cmr.roothash=00',
      ovmf_hash: await addPages(EMPTY_LAUNCH, firmware.address, firmware.volume),
      kernel_hash: sha256Of(utf8('a kernel')),
      initrd_hash: sha256Of(utf8('an initrd')),
      hashes_table_gpa: firmware.hashesTableAddress,
      reset_eip: firmware.resetAddress,
      ovmf_sections: firmware.sections.map(({ kind, address, bytes }) => ({
        gpa: address,
        size: bytes,
        type: SECTION_TYPES[kind],
      })),
      ...change,
    }),
  )
}

const SECTION_TYPES = { zero: 1, secrets: 2, cpuid: 3, 'svsm-caa': 4, 'kernel-hashes': 16 }

/** The list of files of a release with these descriptions of its measurement. */
export function filesOf(descriptions: Readonly<Record<string, Bytes>>): Bytes {
  const lines = Object.entries({ 'rootfs.img.verity': utf8('a root'), ...descriptions }).map(
    ([name, bytes]) => `${toHex(sha256Of(bytes))}  ${name}\n`,
  )
  return utf8(lines.join(''))
}

/** A machine's configuration, and the hash of the release in it. */
export async function snpConfig(change: Json = {}, image?: Bytes) {
  const measurement = image ?? (await snpImage())
  const list = filesOf({ 'measurement.snp.cbor': measurement })
  const launch = {
    checksum_file: toBase64(list),
    measurement: toBase64(measurement),
    vcpus: 4,
    vcpu_type: 'EPYC-v4',
    guest_features: 0x21,
    ...change,
  }
  return {
    osImageHash: toHex(sha256Of(list)),
    config: JSON.stringify({ cpu_count: 4, sev_snp_measurement: JSON.stringify(launch) }),
  }
}

/** SHA-256 of label, a zero and the document. */
export function hostDataOf(mrConfig: string): Bytes {
  return copyBytes(createHash('sha256').update(`dstack-mr-config-v3:\0${mrConfig}`).digest())
}

export interface SnpGuest {
  readonly reportData: Bytes
  readonly mrConfig?: string
  readonly config?: string
  readonly fields?: ReportFields
}

/** The report of a guest, signed by the chip. */
export function snpReport(chain: SimulatedChain, guest: SnpGuest): Promise<Bytes> {
  return signSimulatedReport(chain, {
    reportData: guest.reportData,
    measurement: fromHex(SNP_LAUNCH),
    hostData: hostDataOf(guest.mrConfig ?? MR_CONFIG),
    ...guest.fields,
  })
}

export interface Attestation {
  readonly report: Bytes
  readonly mrConfig: string
  readonly config: string
}

/** SCALE: version 0, platform 3, report, certificates, document, events, REPORT_DATA, configuration. */
export function scaleAttestation({ report, mrConfig, config }: Attestation): Bytes {
  return concatBytes(
    Uint8Array.of(0, 3),
    sized(report),
    compact(1),
    sized(utf8('a certificate')),
    sized(utf8(mrConfig)),
    compact(1),
    sized(utf8('system-ready')),
    sized(new Uint8Array(0)),
    report.slice(0x50, 0x90),
    sized(utf8(config)),
  )
}

/** MessagePack, bytes as lists of numbers. */
export function messagePackAttestation({ report, mrConfig, config }: Attestation): Bytes {
  return copyBytes(
    encodeMessagePack({
      version: 1,
      platform: {
        kind: 'sev-snp',
        data: { report: [...report], cert_chain: [], mr_config: mrConfig },
      },
      stack: { kind: 'dstack', data: { report_data: [0], runtime_events: [], config } },
    }),
  )
}

const sized = (bytes: Bytes) => concatBytes(compact(bytes.length), bytes)

function compact(value: number): Bytes {
  if (value < 64) return Uint8Array.of(value << 2)
  if (value < 16_384) return Uint8Array.of(((value << 2) | 1) & 0xff, value >> 6)
  const word = new DataView(new ArrayBuffer(4))
  word.setUint32(0, (value << 2) | 2, true)
  return new Uint8Array(word.buffer)
}
