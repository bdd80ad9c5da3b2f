import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ImageError } from './image-error.ts'
import type { DebianPackage } from './inputs.ts'
import { run } from './run.ts'

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'

/** APT with lists and sources of its own: it does not touch those of the machine and needs no root. */
export interface Archive {
  readonly options: readonly string[]
  readonly debs: string
}

/**
 * Downloads the archive's package lists.
 * @throws ImageError when there is no APT or no network
 */
export async function openArchive(directory: string, sources: readonly string[]): Promise<Archive> {
  const lists = join(directory, 'lists')
  const debs = join(directory, 'debs')
  for (const path of [join(lists, 'partial'), join(debs, 'partial')]) {
    mkdirSync(path, { recursive: true })
  }
  const sourceList = join(directory, 'sources.list')
  const mirrors = await machineMirrors()
  const lines = sources.map((source) => {
    const [archive = '', ...suite] = source.split(' ')
    const uri = archive.includes('://') ? archive : mirrorOf(archive, mirrors)
    return `deb [arch=amd64 signed-by=${KEYRING}] ${uri} ${suite.join(' ')}`
  })
  writeFileSync(sourceList, `${lines.join('\n')}\n`)
  const settings = [
    `Dir::Etc::sourcelist=${sourceList}`,
    'Dir::Etc::sourceparts=-',
    'Dir::Etc::preferencesparts=-',
    `Dir::State::lists=${lists}`,
    'Dir::State::status=/dev/null',
    `Dir::Cache::archives=${debs}`,
    'Dir::Cache::pkgcache=',
    'Dir::Cache::srcpkgcache=',
    'APT::Architecture=amd64',
    'APT::Sandbox::User=',
    // The lists of archive snapshots are used long after their expiry date.
    'Acquire::Check-Valid-Until=false',
    // Reports an unreachable archive soon.
    'Acquire::http::Timeout=20',
    'Acquire::https::Timeout=20',
  ]
  const options = settings.flatMap((setting) => ['-o', setting])
  await run('apt-get', [...options, '-qq', 'update'])
  return { options, debs }
}

/** The mirrors in this machine's APT configuration. */
async function machineMirrors(): Promise<readonly string[]> {
  const listed = await run('apt-get', ['indextargets', '--format', '$(REPO_URI)'])
  return listed.split('\n').map((uri) => uri.trim().replace(/\/$/, ''))
}

function mirrorOf(archive: string, mirrors: readonly string[]): string {
  const mirror = mirrors.find((uri) => uri.endsWith(`/${archive}`))
  if (mirror !== undefined) return mirror
  throw new ImageError(
    `APT knows no mirror of the archive ${archive}: give its address with --source`,
  )
}

/** The path of a package's file. */
export function debPath(directory: string, wanted: DebianPackage): string {
  return join(directory, 'debs', `${wanted.name}_${wanted.version.replaceAll(':', '%3a')}.deb`)
}

/** Whether the file exists and has this digest; removes a file with another digest. */
export function hasDeb(path: string, sha256: string): boolean {
  if (!existsSync(path)) return false
  if (createHash('sha256').update(readFileSync(path)).digest('hex') === sha256) return true
  rmSync(path)
  return false
}

/**
 * Fetches one pinned package.
 * @throws ImageError when the archive no longer has this version, or has different bytes under its name
 */
export async function fetchDeb(
  directory: string,
  archive: Archive,
  wanted: DebianPackage,
): Promise<void> {
  const label = `${wanted.name} ${wanted.version}`
  const scratch = join(directory, 'fetch')
  rmSync(scratch, { recursive: true, force: true })
  mkdirSync(scratch)
  const exact = `${wanted.name}=${wanted.version}`
  await run('apt-get', [...archive.options, '-qq', 'download', exact], { cwd: scratch }).catch(
    (cause: unknown) => {
      throw new ImageError(
        `${label} cannot be had: the archive may have replaced it. Give the snapshot of the day the image was ` +
          'pinned with --source (see docs/image.md), or put the file into ' +
          debPath(directory, wanted),
        { cause },
      )
    },
  )
  const [name = ''] = (await run('ls', [], { cwd: scratch })).trim().split('\n')
  const bytes = readFileSync(join(scratch, name))
  const target = debPath(directory, wanted)
  writeFileSync(target, bytes)
  if (!hasDeb(target, wanted.sha256)) throw new ImageError(`${label} has not the pinned SHA-256`)
}
