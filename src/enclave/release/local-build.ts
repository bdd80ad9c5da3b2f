import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { LocalBuild } from './local-release.ts'

const PROJECT = fileURLToPath(new URL('../../../', import.meta.url))
/** `src` of a checkout, or the directory that it was compiled into. */
const SOURCES = fileURLToPath(new URL('../../', import.meta.url))

/**
 * Describes the running build: the version, the sources, and the worker's bundle (the sources where there is none).
 */
export async function describeLocalBuild(
  workerBundlePath: string | undefined,
): Promise<LocalBuild> {
  const [version, sourceSha256] = await Promise.all([readVersion(), hashSources()])
  const bundle = workerBundlePath === undefined ? undefined : await readFile(workerBundlePath)
  const bundleSha256 =
    bundle === undefined ? sourceSha256 : createHash('sha256').update(bundle).digest('hex')
  return { version, sourceSha256, bundleSha256 }
}

async function readVersion(): Promise<string> {
  const manifest: unknown = JSON.parse(await readFile(join(PROJECT, 'package.json'), 'utf8'))
  const named = typeof manifest === 'object' && manifest !== null && 'version' in manifest
  return named ? String(manifest.version) : 'unknown'
}

/** SHA-256 over lines of `<sha256 of the file>  <path>\n` sorted by path, as `sha256sum` prints them. */
async function hashSources(): Promise<string> {
  const entries = await readdir(SOURCES, { recursive: true, withFileTypes: true })
  const paths = entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted()
  const lines = await Promise.all(
    paths.map(async (path) => {
      const digest = createHash('sha256')
        .update(await readFile(path))
        .digest('hex')
      return `${digest}  ${relative(dirname(SOURCES), path)}\n`
    }),
  )
  return createHash('sha256').update(lines.join('')).digest('hex')
}
