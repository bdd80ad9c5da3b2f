import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { debPath, fetchDeb, hasDeb, openArchive } from './debian.ts'
import type { DebianPackage, ImageInputs } from './inputs.ts'
import { run } from './run.ts'

/** Directories with the unpacked packages of each use. */
export type Unpacked = Readonly<Record<DebianPackage['use'], string>>

/** Downloads missing packages, checks every package against its pin, and unpacks all of them again. */
export async function unpackPackages(
  directory: string,
  inputs: ImageInputs,
  log: (text: string) => void,
): Promise<Unpacked> {
  const cache = join(directory, 'debian')
  mkdirSync(join(cache, 'debs'), { recursive: true })
  const missing = inputs.packages.filter((one) => !hasDeb(debPath(cache, one), one.sha256))
  if (missing.length > 0) {
    log(`fetching ${missing.length} Debian packages`)
    const archive = await openArchive(cache, inputs.sources)
    // Sequential, because downloads share a directory.
    for (const one of missing) await fetchDeb(cache, archive, one)
  }

  const unpacked = {
    tool: join(directory, 'tools'),
    root: join(directory, 'debian-root'),
    kernel: join(directory, 'kernel'),
  }
  for (const path of Object.values(unpacked)) {
    rmSync(path, { recursive: true, force: true })
    mkdirSync(path, { recursive: true })
  }
  for (const one of inputs.packages) {
    // Sequential, so that of two packages with the same file, the same one always wins.
    await run('dpkg-deb', ['-x', debPath(cache, one), unpacked[one.use]])
  }
  return unpacked
}
