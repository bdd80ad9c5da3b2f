import { build, type BuildOptions, type Plugin } from 'esbuild'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { StartError } from './stack/start-error.ts'

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
  logLevel: 'silent',
} satisfies BuildOptions

/**
 * Bundles the worker into one ES module: the same bytes for every host.
 * @param plugins for measurements: change the code that is bundled
 * @throws StartError when the file cannot be written
 */
export async function bundleWorker(outFile: string, plugins: Plugin[] = []): Promise<void> {
  try {
    await build({ ...OPTIONS, outfile: resolve(outFile), plugins })
  } catch (cause) {
    // Errors in the sources are rethrown with the bundler's own message; a file that cannot be written is for the
    // operator to fix.
    if (!(cause instanceof Error) || !cause.message.includes('Failed to write')) throw cause
    const reason = cause.message.includes('no space left') ? ': no space is left there' : ''
    throw new StartError(`the worker cannot be written to ${resolve(outFile)}${reason}`, { cause })
  }
}
