import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'esbuild'
import { toBase64 } from '../../src/protocol/bytes.ts'
import { readRealFile, REAL_FOLDER } from './real-files.ts'

/** The suites of `src/verify` as one script without Node: for workerd and for browsers. */

const VERIFY_TESTS = fileURLToPath(new URL('../verify/', import.meta.url))
const SHIM = fileURLToPath(new URL('portable-vitest.ts', import.meta.url))

/** What an entry script gets: `runSuite(): Promise<TestOutcome[]>`. */
const SUITE = 'portable-suite'

/** Bundles an entry script that may import `portable-suite`. An import of a Node built-in fails the build. */
export async function bundlePortableSuite(entry: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: entry, resolveDir: VERIFY_TESTS, loader: 'ts' },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    target: 'es2024',
    alias: { vitest: SHIM },
    plugins: [suitePlugin()],
  })
  return outputFiles[0]?.text ?? ''
}

function suitePlugin(): Plugin {
  return {
    name: SUITE,
    setup(bundler) {
      bundler.onResolve({ filter: /^portable-suite$/ }, () => ({ path: SUITE, namespace: SUITE }))
      bundler.onLoad({ filter: /.*/, namespace: SUITE }, () => ({
        contents: suiteSource(),
        resolveDir: VERIFY_TESTS,
        loader: 'ts',
      }))
      bundler.onLoad({ filter: /support\/real-files\.ts$/ }, () => ({
        contents: realFilesSource(),
        resolveDir: join(VERIFY_TESTS, '../support'),
        loader: 'ts',
      }))
    },
  }
}

/** Every file is imported when its turn comes, so that what it registers is told apart. */
function suiteSource(): string {
  const loads = portableFiles().map((file) => `await inFile('${file}', () => import('./${file}'))`)
  return `
    import { inFile, runCollected } from 'vitest'
    export async function runSuite() {
      ${loads.join('\n')}
      return runCollected()
    }`
}

/** Bit flips and fuzzing say nothing more elsewhere, and take their time. */
function portableFiles(): string[] {
  const cases = readdirSync(join(VERIFY_TESTS, 'cases')).map((name) => `cases/${name}`)
  return [...cases.filter((name) => name.endsWith('.test.ts')), 'real-evidence.test.ts']
}

function realFilesSource(): string {
  const names = readdirSync(REAL_FOLDER, { recursive: true, encoding: 'utf8' })
  const files = names
    .filter((name) => /^(snp|gpu)\/.*(alg-none\.json|bin|hex|der|pem)$/.test(name))
    .map((name) => [name, toBase64(readRealFile(name))])
  return `
    import { fromBase64 } from '../../src/protocol/bytes.ts'
    const files = new Map(${JSON.stringify(files)})
    export const readRealFile = (name) => fromBase64(files.get(name))`
}
