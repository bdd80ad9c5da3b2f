import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { bundleWorker } from '../../src/host/bundle-worker.ts'
import { BUNDLE_FILE_VARIABLE } from '../../src/host/worker-bundle.ts'

/**
 * Set-up of the suites that start whole stacks: all of them run the same worker, so it is bundled once, and anew when files
 * that are watched have changed.
 * @returns what removes it in the end
 */
export async function setup(project: TestProject): Promise<() => void> {
  const directory = mkdtempSync(join(tmpdir(), 'cmr-bundle-'))
  const file = join(directory, 'worker.js')
  await bundleWorker(file)
  project.onTestsRerun(() => bundleWorker(file))
  process.env[BUNDLE_FILE_VARIABLE] = file
  return () => rmSync(directory, { recursive: true, force: true })
}
