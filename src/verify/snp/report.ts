import { concatBytes, type Bytes } from '../../protocol/bytes.ts'
import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import { REPORT_BYTES, REPORT_LAYOUT, SIGNED_BYTES, type ReportField } from './report-layout.ts'

/** A parsed but unverified SEV-SNP attestation report (AMD 56860, ATTESTATION_REPORT). */
export interface SnpReport {
  readonly version: number
  readonly guestSvn: number
  readonly policy: bigint
  readonly vmpl: number
  readonly platformInfo: bigint
  readonly authorKeyEnabled: boolean
  readonly chipKeyMasked: boolean
  /** 0 VCEK, 1 VLEK, 7 none; the rest is reserved. */
  readonly signingKey: number
  readonly reportData: Bytes
  readonly measurement: Bytes
  readonly hostData: Bytes
  readonly idKeyDigest: Bytes
  readonly authorKeyDigest: Bytes
  readonly reportId: Bytes
  readonly reportIdMa: Bytes
  readonly currentTcb: Bytes
  /** The TCB that the signing key is derived for. */
  readonly reportedTcb: Bytes
  readonly committedTcb: Bytes
  readonly launchTcb: Bytes
  /** From version 3 on. */
  readonly cpuid: { family: number; model: number; stepping: number } | undefined
  readonly chipId: Bytes
  readonly currentFirmware: FirmwareVersion
  readonly committedFirmware: FirmwareVersion
  /** From version 5 on, zero before; `currentMitigations`, too. */
  readonly launchMitigations: bigint
  readonly currentMitigations: bigint
  /** R and S, big-endian, 48 bytes each, in WebCrypto's form. */
  readonly signature: Bytes
  /** The bytes that the signature covers. */
  readonly signed: Bytes
}

export type FirmwareVersion = readonly [major: number, minor: number, build: number]

const MIN_VERSION = 2
const MAX_VERSION = 5
const ECDSA_P384_SHA384 = 1

/** KEY_INFO: author key, masked chip key, and three bits of signing key; bits from 5 on are reserved. */
const KEY_INFO_BITS = 0x1f

/** The first report version in which a field is not reserved, for fields that are not in all versions. */
const SINCE: Partial<Record<ReportField, number>> = {
  cpuid: 3,
  launchMitigations: 5,
  currentMitigations: 5,
}

/**
 * Parses a report of version 2 to 5. Reserved bytes must be zero even where the signature does not cover them:
 * otherwise the bytes after the signature could be changed or cut off unnoticed.
 * @throws MalformedEvidence when its length, version, algorithm or reserved bytes are wrong
 */
export function readReport(report: Bytes): SnpReport {
  if (report.length !== REPORT_BYTES) {
    throw malformed(`${report.length} bytes long instead of ${REPORT_BYTES}`)
  }
  const bytes = (field: ReportField) => fieldOf(report, field)
  const number = (field: ReportField) => Number(littleEndian(bytes(field)))
  const version = number('version')
  if (version < MIN_VERSION || version > MAX_VERSION) throw malformed(`unknown version ${version}`)
  if (number('signatureAlgorithm') !== ECDSA_P384_SHA384) {
    throw malformed('signature algorithm is not ECDSA P-384 with SHA-384')
  }
  const keyInfo = number('keyInfo')
  if (!reservedIsZero(report, version) || keyInfo > KEY_INFO_BITS) {
    throw malformed('reserved bytes are not zero')
  }
  const [family = 0, model = 0, stepping = 0] = bytes('cpuid')
  return {
    version,
    guestSvn: number('guestSvn'),
    policy: littleEndian(bytes('policy')),
    vmpl: number('vmpl'),
    platformInfo: littleEndian(bytes('platformInfo')),
    authorKeyEnabled: (keyInfo & 1) === 1,
    chipKeyMasked: ((keyInfo >> 1) & 1) === 1,
    signingKey: keyInfo >> 2,
    reportData: bytes('reportData'),
    measurement: bytes('measurement'),
    hostData: bytes('hostData'),
    idKeyDigest: bytes('idKeyDigest'),
    authorKeyDigest: bytes('authorKeyDigest'),
    reportId: bytes('reportId'),
    reportIdMa: bytes('reportIdMa'),
    currentTcb: bytes('currentTcb'),
    reportedTcb: bytes('reportedTcb'),
    committedTcb: bytes('committedTcb'),
    launchTcb: bytes('launchTcb'),
    cpuid: version >= 3 ? { family, model, stepping } : undefined,
    chipId: bytes('chipId'),
    currentFirmware: firmware(bytes('currentFirmware')),
    committedFirmware: firmware(bytes('committedFirmware')),
    launchMitigations: littleEndian(bytes('launchMitigations')),
    currentMitigations: littleEndian(bytes('currentMitigations')),
    signature: concatBytes(bytes('signatureR').toReversed(), bytes('signatureS').toReversed()),
    signed: report.slice(0, SIGNED_BYTES),
  }
}

/** The raw bytes of one field of a report; nothing else is checked. */
export function fieldOf(report: Bytes, field: ReportField): Bytes {
  const [offset, length] = REPORT_LAYOUT[field]
  return report.slice(offset, offset + length)
}

function reservedIsZero(report: Bytes, version: number): boolean {
  const rest = report.slice()
  for (const field of REPORT_FIELDS) {
    const [offset, length] = REPORT_LAYOUT[field]
    if (version >= (SINCE[field] ?? MIN_VERSION)) rest.fill(0, offset, offset + length)
  }
  return rest.every((byte) => byte === 0)
}

const REPORT_FIELDS = Object.keys(REPORT_LAYOUT).filter(
  (name): name is ReportField => name in REPORT_LAYOUT,
)

function firmware([build = 0, minor = 0, major = 0]: Bytes): FirmwareVersion {
  return [major, minor, build]
}

function littleEndian(bytes: Bytes): bigint {
  return bytes.reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n)
}

function malformed(reason: string): MalformedEvidence {
  return new MalformedEvidence('SNP report', reason)
}
