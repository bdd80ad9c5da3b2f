import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  simulatedChipSchema,
  type DaemonBoot,
  type Platform,
  type SimulatedChipKeys,
} from '../protocol/boot.ts'
import { certificateDirectory, createCertificateCache } from './snp/certificate-cache.ts'
import { TSM_ROOT } from './snp/configfs-tsm.ts'
import { fetchFile } from './snp/fetch-file.ts'
import { createKds, type KdsWaits } from './snp/kds.ts'
import { createMachineSource } from './snp/machine-source.ts'
import { realMachine, simulatedMachine, type Machine } from './snp/machine.ts'
import { createQueuedSource } from './snp/queued-source.ts'
import { createRevocationLists } from './snp/revocation-lists.ts'
import { nodeTsmFiles } from './snp/tsm-files.ts'

/**
 * The variable that names a file with the simulated chip of an earlier run (`simulatedChipSchema`), because generating
 * one takes a second of CPU. For tests; a real platform does not read it.
 */
export const CHIP_FILE_VARIABLE = 'SIMULATED_CHIP_FILE'

type Env = Readonly<Record<string, string | undefined>>

export interface MachineDeps {
  readonly env: Env
  /** Milliseconds. */
  readonly now: () => number
  readonly kdsWaits: KdsWaits
}

/** Opens the machine that the supervisor specifies. */
export function openMachine(boot: DaemonBoot, deps: MachineDeps): Machine {
  return MACHINES[boot.platform](boot, deps)
}

const MACHINES: Readonly<Record<Platform, typeof openMachine>> = {
  simulated: (boot, { env, now }) =>
    simulatedMachine(boot.release?.simulated ?? chipOf(env), now()),
  'configfs-tsm': ({ stateDir }, { now, kdsWaits }) => {
    const files = certificateDirectory(join(stateDir, 'amd-certificates'))
    const kds = createKds(fetchFile, now, kdsWaits)
    const cache = createCertificateCache(kds, files)
    const findRevocationList = createRevocationLists({ kds, files, now })
    const tsm = { files: nodeTsmFiles, root: TSM_ROOT, newName: randomUUID }
    return realMachine(
      createQueuedSource(createMachineSource(tsm, { cache, now }, findRevocationList)),
    )
  },
}

function chipOf(env: Env): SimulatedChipKeys | null {
  const file = env[CHIP_FILE_VARIABLE]
  if (file === undefined) return null
  return simulatedChipSchema.parse(JSON.parse(readFileSync(file, 'utf8')))
}
