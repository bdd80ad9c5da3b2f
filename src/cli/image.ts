import { readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Command } from 'commander'
import { buildImage, readImage, type BuildPlan } from './image/build-image.ts'
import { resolveCommit } from './image/app-tree.ts'
import { explainer } from './failure.ts'
import { commandLine } from './image/command-line.ts'
import { ImageError } from './image/image-error.ts'
import { pinPackages } from './image/pin.ts'
import type { Subcommand } from './subcommand.ts'
import { PROJECT_DIR } from '../host/stack/settings.ts'

const OUT = join(PROJECT_DIR, 'dist/image')
const WORK = join(PROJECT_DIR, 'dist/image-work')

/** `image`: builds the guest image, reproducibly: the same commit gives the same bytes (docs/image.md). */
const program = new Command('image').description('The image of the confidential guest.')

program
  .command('build', { isDefault: true })
  .description('build kernel, initrd and root disk of a commit into dist/image')
  .option('--commit <name>', 'the commit to build', 'HEAD')
  .option('--twice', 'build two times and compare')
  .option('--source <line>', 'take Debian packages from here instead, repeatable', collect)
  .action(build)

program
  .command('cmdline')
  .description('print the command line that binds the built image to a configuration')
  .requiredOption('--config <file>', "the router's configuration")
  .action((options: { config: string }) => {
    const { root_hash: rootHash, root_blocks: rootBlocks } = readImage(OUT)
    console.log(commandLine({ rootHash, rootBlocks }, readConfiguration(options.config)))
  })

program
  .command('pin')
  .description('pin the Debian packages of image/inputs.json to the versions of today')
  .action(() => pinPackages(WORK))

async function build(options: {
  commit: string
  twice?: boolean
  source?: string[]
}): Promise<void> {
  const plan: BuildPlan = {
    commit: await resolveCommit(options.commit),
    out: OUT,
    work: WORK,
    sources: options.source,
    log: (text) => console.error(text),
  }
  const image = await buildImage(plan)
  if (options.twice === true) {
    const out = `${OUT}-again`
    const again = await buildImage({ ...plan, out, work: `${WORK}-again` })
    if (JSON.stringify(again) !== JSON.stringify(image)) {
      throw new ImageError(`two builds differ: compare ${OUT} with ${out}`)
    }
    for (const path of [out, `${WORK}-again`]) rmSync(path, { recursive: true })
    console.error('two builds, the same bytes')
  }
  console.log(JSON.stringify(image, null, 2))
}

function readConfiguration(path: string): Uint8Array {
  try {
    return readFileSync(resolve(path))
  } catch (cause) {
    throw new ImageError(`${path} cannot be read`, { cause })
  }
}

function collect(line: string, before: readonly string[] = []): string[] {
  return [...before, line]
}

export function imageSubcommand(): Subcommand {
  return { command: program, explain: explainer({ told: [ImageError] }) }
}
