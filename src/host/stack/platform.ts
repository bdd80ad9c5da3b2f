import { existsSync } from 'node:fs'
import { TSM_ROOT } from '../../enclave/snp/configfs-tsm.ts'
import type { Platform } from '../../protocol/boot.ts'

/** Whether the kernel of this machine hands out attestation reports. */
export function hasReportInterface(): boolean {
  return existsSync(TSM_ROOT)
}

/** Where reports of a router in production mode come from: made up only where that is allowed and needed. */
export function choosePlatform(allowSimulated: boolean, hardware: boolean): Platform {
  return allowSimulated && !hardware ? 'simulated' : 'configfs-tsm'
}
