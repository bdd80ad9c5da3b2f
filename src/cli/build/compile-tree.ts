import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { build } from 'esbuild'
import { bundleWorker } from '../../host/bundle-worker.ts'
import { makePlainScript } from './plain-script.ts'
import { buildConsolePage, buildVerifierPage } from './browser-page.ts'

/** Bundled into one file, so that the packages that only it imports are needed at build time only. */
const STANDIN = 'standin'

/** Code for browsers, which is shipped as finished pages. */
const BROWSER = 'browser'

/** Defines `require` for CommonJS packages. */
const REQUIRE =
  "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);"

/**
 * Compiles this program's sources to JavaScript, because Node strips no types below node_modules: file by file, with
 * the stand-in provider bundled, plus the worker's bundle for workerd and the pages for browsers. The same sources and
 * packages give the same bytes.
 *
 * @param sources the directory of sources, this file among them
 * @param target a directory beside it, which is replaced
 */
export async function compileTree(sources: string, target: string): Promise<void> {
  rmSync(target, { recursive: true, force: true })
  const bundled = [STANDIN, BROWSER].map((part) => join(sources, part))
  cpSync(sources, target, { recursive: true, filter: (path) => !bundled.includes(path) })
  makePlainScript(target)
  await bundleWorker(join(target, 'worker.js'))
  writeFileSync(join(target, 'verifier.html'), await buildVerifierPage(sources))
  writeFileSync(join(target, 'console.html'), await buildConsolePage(sources))
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
