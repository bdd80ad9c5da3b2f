import { mkdirSync, rmdirSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { TSM_ROOT } from '../../enclave/snp/configfs-tsm.ts'
import type { Platform } from '../../protocol/boot.ts'

/** ENOENT: there is no such interface. ENXIO: there is the interface, but no platform behind it. */
const ABSENT = ['ENOENT', 'ENXIO']

/**
 * Whether this machine's kernel provides attestation reports. That the interface exists is no proof: the kernel module
 * creates it on every machine, and refuses entries where there is no platform.
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
