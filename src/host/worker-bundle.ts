import { existsSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { env } from 'node:process'
import { fileURLToPath } from 'node:url'

/** The worker in a compiled tree (`src/cli/build/compile-tree.ts`); a checkout has none. */
const COMPILED = fileURLToPath(new URL('../worker.js', import.meta.url))

/**
 * The variable that names a file with the worker, bundled earlier from the same sources, because bundling takes most of
 * a second of CPU. For tests, which start many local stacks from one checkout; neither production mode nor a compiled
 * tree reads it.
 */
export const BUNDLE_FILE_VARIABLE = 'WORKER_BUNDLE_FILE'

/**
 * Writes the worker, one ES module, to a file: the one that was compiled with this program, or, in a checkout, one that
 * is built from the sources. The same sources give the same bytes.
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

/**
 * Like `writeWorkerBundle`, for a local stack: in a checkout, uses the file that the environment names, if it names
 * one.
 */
export async function writeLocalWorkerBundle(outFile: string): Promise<void> {
  const earlier = existsSync(COMPILED) ? undefined : env[BUNDLE_FILE_VARIABLE]
  await (earlier === undefined ? writeWorkerBundle(outFile) : copyFile(earlier, outFile))
}
