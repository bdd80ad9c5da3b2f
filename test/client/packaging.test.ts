import { join } from 'node:path'
import { build } from 'esbuild'
import { describe, expect, test } from 'vitest'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'

/** What an application takes in with each entry of the package. */
interface Graph {
  readonly packages: readonly string[]
  readonly parts: readonly string[]
  readonly builtins: readonly string[]
  readonly kilobytes: number
}

async function graphOf(entry: string, platform: 'node' | 'browser'): Promise<Graph> {
  const { metafile, outputFiles } = await build({
    absWorkingDir: PROJECT_DIR,
    entryPoints: [join(PROJECT_DIR, entry)],
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform,
    target: 'es2022',
    external: platform === 'node' ? ['undici-7'] : [],
    logLevel: 'silent',
  })
  const inputs = Object.keys(metafile.inputs)
  const imports = Object.values(metafile.outputs).flatMap((output) => output.imports)
  const outside = imports.filter(({ external }) => external === true).map(({ path }) => path)
  const found = (pattern: RegExp) =>
    [...new Set(inputs.flatMap((path) => pattern.exec(path)?.[1] ?? []))].toSorted()
  const kilobytes = Math.round((outputFiles[0]?.contents.length ?? 0) / 1024)
  console.log(`${entry} for ${platform}: ${kilobytes} KiB, minified`)
  return {
    packages: [
      ...found(/node_modules\/((?:@[^/]+\/)?[^/]+)/),
      ...outside.filter((path) => !path.startsWith('node:')),
    ],
    parts: found(/^src\/([^/]+)/),
    builtins: outside.filter((path) => path.startsWith('node:')),
    kilobytes,
  }
}

/** With the whole of zod, its messages in fifty languages included, each would have some 350 KiB more. */
const CLIENT_PACKAGES = ['@noble/curves', '@noble/hashes', 'hpke', 'zod']

describe('the import graph', () => {
  test('of the client holds nothing that only a server needs', async () => {
    const { kilobytes, packages, parts } = await graphOf('src/client/index.ts', 'node')
    expect(parts).toEqual(['client', 'protocol', 'verify'])
    expect([...new Set(packages)].toSorted()).toEqual(
      [...CLIENT_PACKAGES, 'proxy-from-env', 'undici-7'].toSorted(),
    )
    expect(kilobytes).toBeLessThan(260)
  })

  test('of the client for browsers holds nothing of Node', async () => {
    const { builtins, kilobytes, packages, parts } = await graphOf(
      'src/client/browser.ts',
      'browser',
    )
    expect(parts).toEqual(['client', 'protocol', 'verify'])
    expect(packages).toEqual(CLIENT_PACKAGES)
    expect(builtins).toEqual([])
    expect(kilobytes).toBeLessThan(250)
  })

  test('of the verifier holds zod alone, and runs in a browser', async () => {
    const { builtins, kilobytes, packages, parts } = await graphOf('src/verify/index.ts', 'browser')
    expect(parts).toEqual(['protocol', 'verify'])
    expect(packages).toEqual(['zod'])
    expect(builtins).toEqual([])
    expect(kilobytes).toBeLessThan(180)
  })
})
