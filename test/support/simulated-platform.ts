import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { issueSimulatedChain, makeSimulatedAuthority } from '../../src/enclave/simulated/chain.ts'
import { exportSimulatedChain } from '../../src/enclave/snp/simulated-source.ts'
import { CHIP_FILE_VARIABLE } from '../../src/enclave/open-machine.ts'
import { AUTHORITY_VARIABLE, exportAuthority } from './run-authority.ts'

/**
 * Set-up of a whole test run. An authority of a simulated platform takes a second of CPU to make (two RSA-4096 keys), so
 * every test file and every stack that a test starts uses the same one.
 * @returns what removes the file in the end
 */
export async function setup(): Promise<() => void> {
  const directory = mkdtempSync(join(tmpdir(), 'cmr-platform-'))
  const authority = await makeSimulatedAuthority()
  const chip = await exportSimulatedChain(await issueSimulatedChain(authority, Date.now()))
  const chipFile = join(directory, 'chip.json')
  writeFileSync(chipFile, JSON.stringify(chip))
  process.env[CHIP_FILE_VARIABLE] = chipFile
  process.env[AUTHORITY_VARIABLE] = await exportAuthority(authority)
  return () => rmSync(directory, { recursive: true })
}
