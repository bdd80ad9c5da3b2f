import { existsSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

/** The worker in a compiled tree (`src/cli/build/compile-tree.ts`); a checkout has none. */
const COMPILED = fileURLToPath(new URL('../worker.js', import.meta.url))

/**
 * Writes the worker, one ES module, to a file: the one compiled with this program, or in a checkout one built from
 * the sources. The same sources give the same bytes.
 */
export async function writeWorkerBundle(outFile: string): Promise<void> {
  if (existsSync(COMPILED)) {
    await copyFile(COMPILED, outFile)
    return
  }
  // Only developers have esbuild.
  const { bundleWorker } = await import('./bundle-worker.ts')
  await bundleWorker(outFile)
}
