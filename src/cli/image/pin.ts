import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openArchive, type Archive } from './debian.ts'
import { ImageError } from './image-error.ts'
import { INPUTS_PATH, readInputs, type DebianPackage } from './inputs.ts'
import { run } from './run.ts'

/**
 * Pins every package of `image/inputs.json` to the archive's current version. Review and commit the result like any
 * change.
 */
export async function pinPackages(directory: string): Promise<void> {
  const inputs = readInputs()
  const archive = await openArchive(join(directory, 'debian'), inputs.sources)
  const packages = await Promise.all(inputs.packages.map((one) => pinned(archive, one)))
  const text = JSON.stringify({ ...inputs, packages }, null, 2)
  if (`${text}\n` !== readFileSync(INPUTS_PATH, 'utf8')) writeFileSync(INPUTS_PATH, `${text}\n`)
}

async function pinned(archive: Archive, { name, use }: DebianPackage): Promise<DebianPackage> {
  const text = await run('apt-cache', [...archive.options, 'show', '--no-all-versions', name])
  const field = (key: string) => new RegExp(`^${key}: (.+)$`, 'm').exec(text)?.[1]
  const version = field('Version')
  const sha256 = field('SHA256')
  if (version === undefined || sha256 === undefined) {
    throw new ImageError(`${name} is not in the archive; is there a newer name for it?`)
  }
  return { name, version, sha256, use }
}
