import { existsSync } from 'node:fs'
import { TSM_ROOT } from '../../enclave/snp/configfs-tsm.ts'
import type { Platform } from '../../protocol/boot.ts'
import type { ServiceConfig } from '../../protocol/config.ts'

/** Whether the kernel of this machine hands out attestation reports. */
export function hasReportInterface(): boolean {
  return existsSync(TSM_ROOT)
}

/** Where reports come from: made up in local mode, and in production mode only where that is allowed and needed. */
export function choosePlatform(
  { mode, allow_simulated: allowed }: Pick<ServiceConfig, 'mode' | 'allow_simulated'>,
  hardware: boolean,
): Platform {
  return mode === 'local' || (allowed && !hardware) ? 'simulated' : 'configfs-tsm'
}
