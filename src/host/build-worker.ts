import { build, type BuildOptions } from 'esbuild'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PROJECT_DIR = fileURLToPath(new URL('../..', import.meta.url))

const OPTIONS = {
  absWorkingDir: PROJECT_DIR,
  entryPoints: [join(PROJECT_DIR, 'src/worker/index.ts')],
  bundle: true,
  format: 'esm',
  platform: 'neutral',
  mainFields: ['browser', 'module', 'main'],
  conditions: ['workerd', 'worker', 'browser', 'import'],
  target: 'es2024',
  external: ['cloudflare:*', 'node:*'],
  legalComments: 'none',
  logLevel: 'error',
} satisfies BuildOptions

/** Bundles the worker into one ES module: the same bytes for every host. */
export async function buildWorker(outFile: string): Promise<void> {
  await build({ ...OPTIONS, outfile: outFile })
}
