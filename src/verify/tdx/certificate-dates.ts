import { EvidenceRefused } from '../evidence-refused.ts'
import type { Certificate } from '../x509/certificate.ts'

/**
 * Requires that each certificate is valid at `now` (ms). `@phala/dcap-qvl` (0.3.9) checks this in Node only: elsewhere its
 * own parser of certificates knows no dates, so that no certificate ever expires.
 * @returns when the first of them ends, in milliseconds since 1970
 * @throws EvidenceRefused `hardware` (`certificate_dates`)
 */
export function requireCertificateDates(certificates: readonly Certificate[], now: number): number {
  if (certificates.every(({ notBefore, notAfter }) => notBefore <= now && now <= notAfter)) {
    return Math.min(...certificates.map(({ notAfter }) => notAfter))
  }
  throw new EvidenceRefused('hardware', ['certificate_dates'])
}
