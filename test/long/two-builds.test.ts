import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, it } from 'vitest'
import { compileSources } from '../../src/cli/image/app-tree.ts'
import { debPath, fetchDeb, hasDeb, openArchive } from '../../src/cli/image/debian.ts'
import { readInputs } from '../../src/cli/image/inputs.ts'
import { makeParts } from '../../src/cli/image/parts.ts'
import { sha256Hex } from '../../src/protocol/digest.ts'
import { copyBytes } from '../../src/protocol/bytes.ts'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'

/**
 * The short form of `npm run image -- --twice`: everything of an image is built in two folders and compared, except Node
 * and the npm packages, whose bytes package-lock.json names. It needs the Debian packages of image/inputs.json, and
 * fetches those that an earlier build did not leave here.
 */

const CACHE = join(PROJECT_DIR, 'dist/image-work/debian')
const FOLDERS = join(PROJECT_DIR, 'dist/two-builds')

/** Names of the packages that cannot be had here. */
async function missingPackages(): Promise<string[]> {
  const { packages, sources } = readInputs()
  const missing = packages.filter((one) => !hasDeb(debPath(CACHE, one), one.sha256))
  if (missing.length === 0) return []
  const archive = await openArchive(CACHE, sources).catch(() => undefined)
  const absent: string[] = []
  for (const one of missing) {
    const fetched =
      archive !== undefined &&
      (await fetchDeb(CACHE, archive, one).then(
        () => true,
        () => false,
      ))
    if (!fetched) absent.push(`${one.name} ${one.version}`)
  }
  return absent
}

/** The application as the image has it, compiled where it lies, without the packages that npm installs beside it. */
async function makeApp(root: string): Promise<void> {
  const app = join(root, 'app')
  for (const part of ['LICENSE', 'config', 'package.json', 'src']) {
    cpSync(join(PROJECT_DIR, part), join(app, part), { recursive: true })
  }
  const packages = join(app, 'node_modules')
  await promisify(execFile)('cp', ['-al', join(PROJECT_DIR, 'node_modules'), packages])
  await compileSources(app)
  rmSync(packages, { recursive: true })
}

async function build(folder: string) {
  const work = join(FOLDERS, folder)
  mkdirSync(work, { recursive: true })
  symlinkSync(CACHE, join(work, 'debian'))
  const programs = join(PROJECT_DIR, 'image')
  const parts = await makeParts({ work, programs, inputs: readInputs(), makeApp, log: () => {} })
  return {
    kernel: await sha256Hex(copyBytes(readFileSync(parts.kernel))),
    initrd: await sha256Hex(parts.initrd),
    root: parts.disk.rootHash,
    disk: await sha256Hex(parts.disk.bytes),
  }
}

afterAll(() => rmSync(FOLDERS, { recursive: true, force: true }))

it('two builds in two folders have the same bytes', { timeout: 900_000 }, async ({ skip }) => {
  const isBuilder = process.platform === 'linux' && process.arch === 'x64'
  if (!isBuilder) skip('images are built on Linux on x86-64')
  const missing = await missingPackages()
  if (missing.length > 0) {
    const reason = `no image is built twice; these Debian packages cannot be had: ${missing.join(', ')}`
    console.log(reason)
    skip(reason)
  }
  rmSync(FOLDERS, { recursive: true, force: true })
  const one = await build('one')
  expect(await build('other/deeper')).toEqual(one)
})
