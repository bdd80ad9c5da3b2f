import type { Bytes } from '../../protocol/bytes.ts'

/** A source of SNP reports. */
export interface ReportSource {
  /**
   * Captures a report over exactly these 64 bytes.
   * @throws CaptureError when the platform gives no valid report with certificates
   */
  capture(reportData: Bytes): Promise<CapturedReport>
}

export interface CapturedReport {
  /** 1184 bytes. */
  readonly report: Bytes
  /** VEK, ASK (or ASVK), ARK in PEM. */
  readonly chainPem: string
  /** The revocation list of the chain's root in DER; undefined where no valid one is available. */
  readonly crl: Bytes | undefined
  /** The report provider: `sev_guest` or `simulated`. */
  readonly provider: string
}
