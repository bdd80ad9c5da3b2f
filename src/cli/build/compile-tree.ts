import { cpSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { build } from 'esbuild'
import { bundleWorker } from '../../host/bundle-worker.ts'
import { makePlainScript } from './plain-script.ts'

/** Becomes one file; what it imports and nothing else does is then needed at build time only. */
const STANDIN = 'standin'

/** Gives `require` back to packages of the older module form. */
const REQUIRE =
  "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);"

/**
 * Compiles this program's own sources for a Node that strips no types, as it does not below node_modules: plain
 * JavaScript file for file, with the stand-in provider bundled, and the worker bundled besides for workerd. The same sources and packages give the
 * same bytes.
 *
 * @param sources the directory of sources, this file among them
 * @param target a directory beside it, made anew
 */
export async function compileTree(sources: string, target: string): Promise<void> {
  rmSync(target, { recursive: true, force: true })
  const standin = join(sources, STANDIN)
  cpSync(sources, target, { recursive: true, filter: (path) => path !== standin })
  makePlainScript(target)
  await bundleWorker(join(target, 'worker.js'))
  await build({
    absWorkingDir: resolve(sources),
    entryPoints: [resolve(sources, 'standin/main.ts')],
    outfile: resolve(target, 'standin/main.js'),
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    banner: { js: REQUIRE },
    legalComments: 'none',
    logLevel: 'error',
  })
}
