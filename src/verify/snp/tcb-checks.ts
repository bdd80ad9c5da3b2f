import { equalBytes } from '../../protocol/bytes.ts'
import type { TcbFloors } from '../../protocol/trust-bundle.ts'
import { firstFault, judge, type Check } from '../check.ts'
import type { SnpPolicy } from './policy.ts'
import { AMD_NAMES, type Product } from './product.ts'
import type { FirmwareVersion, SnpReport } from './report.ts'
import { componentsBelow, componentsUnequal, describeTcb, readTcb, type Tcb } from './tcb.ts'

const RESERVED = 'a byte that the layout of this product reserves is set'

/** Checks the reported TCB. The key is derived for it, so it must equal the certificate's in every component. */
export function checkReportedTcb(report: SnpReport, product: Product, certified: Tcb): Check {
  const reported = readTcb(product, report.reportedTcb)
  const unequal = reported && componentsUnequal(reported, certified)
  const fault = firstFault(
    reported === undefined && RESERVED,
    unequal?.[0] && `not what the certificate says: ${unequal.join(', ')}`,
  )
  return judge('reported_tcb', fault, reported === undefined ? '' : describeTcb(reported))
}

/** Checks the firmware levels against each other and against the floors, component by component. */
export function checkTcb(report: SnpReport, product: Product, policy: SnpPolicy): Check[] {
  const reported = readTcb(product, report.reportedTcb) ?? {}
  const launch = readTcb(product, report.launchTcb)
  const checks = [
    judge('tcb_order', orderFault(report, product), 'reported and committed <= current'),
  ]
  if (policy.tcbFloor !== undefined) {
    const fault = floorFault(reported, policy.tcbFloor, product)
    checks.push(judge('tcb_floor', fault, describeTcb(reported)))
  }
  if (policy.launchTcbFloor !== undefined) {
    const fault =
      launch === undefined ? RESERVED : floorFault(launch, policy.launchTcbFloor, product)
    checks.push(judge('launch_tcb_floor', fault, describeTcb(launch ?? {})))
  }
  return [...checks, checkFirmware(report, policy), checkCommitted(report, policy)]
}

function orderFault(report: SnpReport, product: Product): string | undefined {
  const reported = readTcb(product, report.reportedTcb)
  const current = readTcb(product, report.currentTcb)
  const committed = readTcb(product, report.committedTcb)
  if (current === undefined || committed === undefined) return RESERVED
  const reportedAbove = componentsBelow(current, reported ?? {})
  const committedAbove = componentsBelow(current, committed)
  return firstFault(
    reportedAbove[0] && `current is lower than reported: ${reportedAbove.join(', ')}`,
    committedAbove[0] && `current is lower than committed: ${committedAbove.join(', ')}`,
  )
}

function floorFault(tcb: Tcb, floors: TcbFloors, product: Product): string | undefined {
  const floor = floors[product]
  if (floor === undefined) return `no floor is set for ${AMD_NAMES[product]}`
  const below = componentsBelow(tcb, floor)
  return below[0] && below.join(', ')
}

function checkFirmware({ committedFirmware }: SnpReport, { minFirmware }: SnpPolicy): Check {
  const low = isLower(committedFirmware, minFirmware)
  const stated = committedFirmware.join('.')
  const fault = low ? `${stated} is below ${minFirmware.join('.')}` : undefined
  return judge('firmware_version', fault, stated)
}

/** Checks that the firmware is committed: provisional firmware can be rolled back. */
function checkCommitted(report: SnpReport, { allowProvisionalFirmware }: SnpPolicy): Check {
  const current = report.currentFirmware.join('.')
  const committed =
    equalBytes(report.currentTcb, report.committedTcb) &&
    current === report.committedFirmware.join('.')
  const detail = committed ? 'committed' : 'provisional'
  const fault =
    committed || allowProvisionalFirmware ? undefined : `${current} runs without being committed`
  return judge('firmware_committed', fault, detail)
}

function isLower(left: FirmwareVersion, right: FirmwareVersion): boolean {
  for (const [index, least] of right.entries()) {
    const part = left[index] ?? 0
    if (part !== least) return part < least
  }
  return false
}
