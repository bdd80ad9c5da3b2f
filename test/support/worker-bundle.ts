import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BUNDLE_FILE_VARIABLE, writeWorkerBundle } from '../../src/host/worker-bundle.ts'

/**
 * Set-up of the suites that start whole stacks: all of them run the same worker, so it is bundled once.
 * @returns what removes it in the end
 */
export async function setup(): Promise<() => void> {
  const directory = mkdtempSync(join(tmpdir(), 'cmr-bundle-'))
  const file = join(directory, 'worker.js')
  await writeWorkerBundle(file)
  process.env[BUNDLE_FILE_VARIABLE] = file
  return () => rmSync(directory, { recursive: true, force: true })
}
