/**
 * The fields of a SEV-SNP attestation report: `[offset, length]` in bytes, integers little-endian (AMD 56860,
 * ATTESTATION_REPORT). Everything else is reserved and zero.
 */
export const REPORT_LAYOUT = {
  version: [0x000, 4],
  guestSvn: [0x004, 4],
  policy: [0x008, 8],
  familyId: [0x010, 16],
  imageId: [0x020, 16],
  vmpl: [0x030, 4],
  signatureAlgorithm: [0x034, 4],
  currentTcb: [0x038, 8],
  platformInfo: [0x040, 8],
  keyInfo: [0x048, 4],
  reportData: [0x050, 64],
  measurement: [0x090, 48],
  hostData: [0x0c0, 32],
  idKeyDigest: [0x0e0, 48],
  authorKeyDigest: [0x110, 48],
  reportId: [0x140, 32],
  reportIdMa: [0x160, 32],
  reportedTcb: [0x180, 8],
  /** Family, model and stepping; reserved in version 2. */
  cpuid: [0x188, 3],
  chipId: [0x1a0, 64],
  committedTcb: [0x1e0, 8],
  /** Build, minor, major; `committedFirmware`, too. */
  currentFirmware: [0x1e8, 3],
  committedFirmware: [0x1ec, 3],
  launchTcb: [0x1f0, 8],
  /** Reserved before version 5; `currentMitigations`, too. */
  launchMitigations: [0x1f8, 8],
  currentMitigations: [0x200, 8],
  /** Little-endian and zero-extended: 48 bytes carry the number; `signatureS`, too. */
  signatureR: [0x2a0, 48],
  signatureS: [0x2e8, 48],
} as const satisfies Record<string, readonly [offset: number, length: number]>

export type ReportField = keyof typeof REPORT_LAYOUT

export const REPORT_BYTES = 0x4a0

/** The signature covers the report up to here. */
export const SIGNED_BYTES = 0x2a0
