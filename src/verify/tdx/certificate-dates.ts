import { EvidenceRefused } from '../evidence-refused.ts'
import type { Certificate } from '../x509/certificate.ts'

/**
 * Requires that each certificate is valid at `now` (ms). `@phala/dcap-qvl` (0.3.9) checks this only in Node: elsewhere
 * its own certificate parser does not read dates, so no certificate would ever expire.
 * @returns when the first of them expires, in milliseconds since 1970
 * @throws EvidenceRefused `hardware` (`certificate_dates`)
 */
export function requireCertificateDates(certificates: readonly Certificate[], now: number): number {
  if (certificates.every(({ notBefore, notAfter }) => notBefore <= now && now <= notAfter)) {
    return Math.min(...certificates.map(({ notAfter }) => notAfter))
  }
  throw new EvidenceRefused('hardware', ['certificate_dates'])
}
