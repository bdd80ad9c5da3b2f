import { equalBytes, toHex } from '../../protocol/bytes.ts'
import { firstFault, judge, type Check } from '../check.ts'
import type { VekChain } from './chain.ts'
import type { SnpPolicy } from './policy.ts'
import { AMD_NAMES, productOfCpuid } from './product.ts'
import type { SnpReport } from './report.ts'
import type { VekClaims } from './vek-extensions.ts'

const CHIP_ID_BYTES = 64
const SIGNING_KEYS: Record<number, string> = { 0: 'vcek', 1: 'vlek', 7: 'none' }

/** Checks that report and certificates are of one chip, with a key of the stated kind. */
export function checkChip(report: SnpReport, chain: VekChain, policy: SnpPolicy): Check[] {
  const stated = SIGNING_KEYS[report.signingKey] ?? `reserved value ${report.signingKey}`
  return [
    checkProduct(report, chain),
    judge(
      'signing_key',
      stated === chain.kind ? undefined : `the report states ${stated}, not ${chain.kind}`,
      stated,
    ),
    judge(
      'chip_key_not_masked',
      report.chipKeyMasked ? 'the chip key is masked' : undefined,
      'not masked',
    ),
    judge(
      'report_version',
      report.version < policy.minReportVersion
        ? `version ${report.version} is below ${policy.minReportVersion}`
        : undefined,
      `version ${report.version}`,
    ),
  ]
}

/** Checks the subject of the certificate: the chip of a VCEK, the cloud provider of a VLEK. */
export function checkSubject(report: SnpReport, claims: VekClaims, policy: SnpPolicy): Check {
  if (claims.hwid === undefined) {
    const cspId = claims.cspId ?? ''
    const refused = policy.allowedVlekCspIds?.includes(cspId) === false
    return judge('vlek_csp', refused ? `${cspId} is not an accepted provider` : undefined, cspId)
  }
  const { hwid } = claims
  const tail = report.chipId.slice(hwid.length, CHIP_ID_BYTES)
  const masked = report.chipId.every((byte) => byte === 0)
  if (masked && policy.allowMaskedChipId) return judge('chip_id', undefined, 'masked, allowed')
  const fault = firstFault(
    masked && 'the host masked the chip id',
    !equalBytes(report.chipId.slice(0, hwid.length), hwid) && 'the certificate is of another chip',
    tail.some((byte) => byte !== 0) && 'bytes after the chip id are not zero',
  )
  return judge('chip_id', fault, `${toHex(hwid.slice(0, 8))}${hwid.length > 8 ? '...' : ''}`)
}

/**
 * Checks the product. A version 2 report does not state the CPU; there the certificate alone determines the product.
 */
function checkProduct({ cpuid }: SnpReport, { product }: VekChain): Check {
  if (cpuid === undefined) return judge('product', undefined, `${AMD_NAMES[product]}, by issuer`)
  const stated = productOfCpuid(cpuid.family, cpuid.model)
  const named = `family ${cpuid.family} model ${cpuid.model}`
  const fault = stated === product ? undefined : `${named} is not ${AMD_NAMES[product]}`
  return judge('product', fault, `${AMD_NAMES[product]}, ${named}`)
}
