import { toHex } from '../../protocol/bytes.ts'
import { productOfCpuid } from './product.ts'
import type { SnpReport } from './report.ts'
import { readTcb } from './tcb.ts'

const DEBUG_ALLOWED = 1n << 19n

/** The statements of a report, named as in RFC 9711 where it has a name, like in the router's own hop. */
export function summarizeSnp(report: SnpReport) {
  const { family = -1, model = -1 } = report.cpuid ?? {}
  const product = productOfCpuid(family, model)
  return {
    measurement: toHex(report.measurement),
    product: product ?? 'unknown',
    report_version: report.version,
    guest_svn: report.guestSvn,
    vmpl: report.vmpl,
    host_data: toHex(report.hostData),
    dbgstat: (report.policy & DEBUG_ALLOWED) === 0n ? 'disabled' : 'enabled',
    policy: `0x${report.policy.toString(16)}`,
    platform_info: `0x${report.platformInfo.toString(16)}`,
    reported_tcb: product === undefined ? null : { ...readTcb(product, report.reportedTcb) },
  }
}
