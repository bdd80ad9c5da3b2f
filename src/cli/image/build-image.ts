import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkOut, hasUncommitted, makeAppTree } from './app-tree.ts'
import { emptyDirectory } from './empty-directory.ts'
import { imageSchema, type ImageDescription } from './image-description.ts'
import { ImageError } from './image-error.ts'
import { readInputs } from './inputs.ts'
import { makeParts } from './parts.ts'

export interface BuildPlan {
  /** Full name of the commit that is built. */
  readonly commit: string
  /** The directory for the finished files. */
  readonly out: string
  /** The working directory; downloaded Debian packages stay there for later builds. */
  readonly work: string
  /** Used instead of the sources of `image/inputs.json`. */
  readonly sources: readonly string[] | undefined
  readonly log: (text: string) => void
}

/**
 * Builds `vmlinuz`, `initrd.cpio`, `root.img` and `image.json`. The same commit gives the same bytes on every x86-64
 * machine.
 * @throws ImageError when the build fails
 */
export async function buildImage({
  commit,
  out,
  work,
  sources,
  log,
}: BuildPlan): Promise<ImageDescription> {
  if (process.arch !== 'x64' || process.platform !== 'linux') {
    throw new ImageError('an image is built on Linux on x86-64: its tools are Debian programs')
  }
  if (await hasUncommitted()) log('changes that are not committed stay out of the image')
  const source = emptyDirectory(work, 'source')
  await checkOut(commit, ['image'], source)
  const pinned = readInputs(join(source, 'image/inputs.json'))
  const inputs = sources === undefined ? pinned : { ...pinned, sources: [...sources] }
  const makeApp = (root: string) => makeAppTree(root, commit)
  const parts = await makeParts({ work, programs: join(source, 'image'), inputs, makeApp, log })

  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  copyFileSync(parts.kernel, join(out, 'vmlinuz'))
  writeFileSync(join(out, 'initrd.cpio'), parts.initrd)
  writeFileSync(join(out, 'root.img'), parts.disk.bytes)
  const description: ImageDescription = {
    commit,
    kernel_sha256: hashOf(join(out, 'vmlinuz')),
    initrd_sha256: hashOf(join(out, 'initrd.cpio')),
    root_sha256: hashOf(join(out, 'root.img')),
    root_hash: parts.disk.rootHash,
    root_blocks: parts.disk.dataBlocks,
  }
  writeFileSync(join(out, 'image.json'), `${JSON.stringify(description, null, 2)}\n`)
  return description
}

/**
 * Reads `image.json` of a finished image.
 * @throws ImageError when the directory has no valid `image.json`
 */
export function readImage(out: string): ImageDescription {
  try {
    return imageSchema.parse(JSON.parse(readFileSync(join(out, 'image.json'), 'utf8')))
  } catch (cause) {
    throw new ImageError(`${out} holds no image: build one with "npm run image"`, { cause })
  }
}

function hashOf(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}
