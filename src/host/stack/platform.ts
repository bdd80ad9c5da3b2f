import { existsSync } from 'node:fs'
import { TSM_ROOT } from '../../enclave/snp/configfs-tsm.ts'
import type { Platform } from '../../protocol/boot.ts'

/** Whether this machine's kernel provides attestation reports. */
export function hasReportInterface(): boolean {
  return existsSync(TSM_ROOT)
}

/** The source of reports in production mode: simulated only where that is allowed and needed. */
export function choosePlatform(allowSimulated: boolean, hardware: boolean): Platform {
  return allowSimulated && !hardware ? 'simulated' : 'configfs-tsm'
}
