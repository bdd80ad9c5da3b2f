import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { copyBytes, type Bytes } from '../../protocol/bytes.ts'
import { emptyDirectory } from './empty-directory.ts'
import { ImageError } from './image-error.ts'
import { compileProgram, makeInitrd } from './initrd.ts'
import type { ImageInputs } from './inputs.ts'
import { unpackPackages } from './packages.ts'
import { makeRootTree, type RootPlan } from './root-tree.ts'
import { Toolchain } from './toolchain.ts'
import { makeVerityDisk, type VerityDisk } from './verity.ts'

export interface PartsPlan {
  /** The working directory; downloaded Debian packages stay there for later builds. */
  readonly work: string
  /** The directory with the sources of PID 1 and of run-as. */
  readonly programs: string
  readonly inputs: ImageInputs
  readonly makeApp: RootPlan['makeApp']
  readonly log: (text: string) => void
}

/** The files that a guest boots from. */
export interface ImageParts {
  /** The path of the kernel. */
  readonly kernel: string
  readonly initrd: Bytes
  readonly disk: VerityDisk
}

/**
 * Makes the parts of an image: the same inputs give the same bytes, wherever they are built.
 * @throws ImageError when a package cannot be downloaded or a program fails
 */
export async function makeParts(plan: PartsPlan): Promise<ImageParts> {
  const { work, programs, inputs, makeApp, log } = plan
  const unpacked = await unpackPackages(work, inputs, log)
  const toolchain = new Toolchain(unpacked.tool)

  log('compiling PID 1')
  const objects = emptyDirectory(work, 'programs')
  const compile = (name: string) =>
    compileProgram(toolchain, join(programs, name), join(objects, name))
  const init = await compile('init')
  const runAs = await compile('run-as')

  log('collecting the root')
  const root = join(work, 'root')
  await makeRootTree({ root, debian: unpacked.root, makeApp, runAs })
  log('packing the root')
  const squashed = join(work, 'root.squashfs')
  await toolchain.squash(root, squashed, inputs.epoch)
  return {
    kernel: findKernel(unpacked.kernel),
    initrd: makeInitrd(init, unpacked.kernel, inputs),
    disk: makeVerityDisk(copyBytes(readFileSync(squashed))),
  }
}

function findKernel(directory: string): string {
  const [kernel, another] = globSync(`${directory}/boot/vmlinuz-*`)
  if (kernel === undefined || another !== undefined) {
    throw new ImageError('there is not exactly one kernel')
  }
  return kernel
}
