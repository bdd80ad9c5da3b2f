import { build, type BuildOptions, type Plugin } from 'esbuild'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const SOURCES = fileURLToPath(new URL('..', import.meta.url))

const OPTIONS = {
  absWorkingDir: SOURCES,
  entryPoints: [join(SOURCES, 'worker/index.ts')],
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

/**
 * Bundles the worker into one ES module: the same bytes for every host.
 * @param plugins change what is bundled, for measurements
 */
export async function bundleWorker(outFile: string, plugins: Plugin[] = []): Promise<void> {
  await build({ ...OPTIONS, outfile: resolve(outFile), plugins })
}
