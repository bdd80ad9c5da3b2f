import { mkdirSync, rmdirSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { TSM_ROOT } from '../../enclave/snp/configfs-tsm.ts'
import type { Platform } from '../../protocol/boot.ts'

/** No such directory: no interface. No such device: the interface without a platform behind it. */
const ABSENT = ['ENOENT', 'ENXIO']

/**
 * Whether this machine's kernel provides attestation reports. The interface alone is no sign: its module makes it on
 * every machine, and refuses entries where there is no platform.
 */
export function hasReportInterface(root: string = TSM_ROOT): boolean {
  const entry = join(root, `probe-${randomUUID()}`)
  try {
    mkdirSync(entry)
    rmdirSync(entry)
    return true
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    return !ABSENT.includes(code)
  }
}

/** The source of reports in production mode: simulated only where that is allowed and needed. */
export function choosePlatform(allowSimulated: boolean, hardware: boolean): Platform {
  return allowSimulated && !hardware ? 'simulated' : 'configfs-tsm'
}
