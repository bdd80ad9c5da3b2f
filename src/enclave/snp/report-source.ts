import type { Bytes } from '../../protocol/bytes.ts'

/** Where SNP reports come from. */
export interface ReportSource {
  /**
   * Asks for a report over exactly these 64 bytes.
   * @throws CaptureError when it cannot be obtained or is not valid
   */
  capture(reportData: Bytes): Promise<CapturedReport>
}

export interface CapturedReport {
  /** The 1184 bytes. */
  readonly report: Bytes
  /** VEK, ASK (or ASVK), ARK in PEM. */
  readonly chainPem: string
  /** The revocation list of the chain's root in DER; undefined where none in force could be had. */
  readonly crl: Bytes | undefined
  /** What made the report: `sev_guest`, or `simulated`. */
  readonly provider: string
}
