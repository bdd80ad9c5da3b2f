import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { DaemonBoot, Platform } from '../protocol/boot.ts'
import { certificateDirectory, createCertificateCache } from './snp/certificate-cache.ts'
import { TSM_ROOT } from './snp/configfs-tsm.ts'
import { fetchFile } from './snp/fetch-file.ts'
import { createKds } from './snp/kds.ts'
import { createMachineSource } from './snp/machine-source.ts'
import { realMachine, simulatedMachine, type Machine } from './snp/machine.ts'
import { createQueuedSource } from './snp/queued-source.ts'
import { createRevocationLists } from './snp/revocation-lists.ts'
import { nodeTsmFiles } from './snp/tsm-files.ts'

/** The machine that the supervisor says this is. `now` in milliseconds. */
export function openMachine(boot: DaemonBoot, now: () => number): Machine {
  return MACHINES[boot.platform](boot, now)
}

const MACHINES: Readonly<Record<Platform, typeof openMachine>> = {
  simulated: (boot, now) => simulatedMachine(boot.release?.simulated ?? null, now()),
  'configfs-tsm': ({ stateDir }, now) => {
    const files = certificateDirectory(join(stateDir, 'amd-certificates'))
    const kds = createKds(fetchFile, now)
    const cache = createCertificateCache(kds, files)
    const findRevocationList = createRevocationLists({ kds, files, now })
    const tsm = { files: nodeTsmFiles, root: TSM_ROOT, newName: randomUUID }
    return realMachine(
      createQueuedSource(createMachineSource(tsm, { cache, now }, findRevocationList)),
    )
  },
}
