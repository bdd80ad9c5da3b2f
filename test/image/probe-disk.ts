import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import type { MeasuredRoot } from '../../src/cli/image/command-line.ts'
import { readInputs } from '../../src/cli/image/inputs.ts'
import { Toolchain } from '../../src/cli/image/toolchain.ts'
import { makeVerityDisk } from '../../src/cli/image/verity.ts'
import { copyBytes } from '../../src/protocol/bytes.ts'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'

const WORK = join(PROJECT_DIR, 'dist/image-work')
const ROOT = join(WORK, 'root')
const PROBE = join(PROJECT_DIR, 'test/support/account-probe.ts')

/** Why there is no root to change, or undefined. */
export function whyNoRoot(): string | undefined {
  return existsSync(ROOT) ? undefined : 'dist/image-work is gone: build again with "npm run image"'
}

/**
 * A root disk like that of the image that was built last, with a probe in the place of the stand-in provider, which the
 * guest starts under the worker's account. Its root hash is another, so it is another measurement: the image that is
 * released has no such program.
 */
export async function makeProbeDisk(directory: string): Promise<MeasuredRoot & { path: string }> {
  const root = join(directory, 'probe-root')
  execFileSync('cp', ['-a', ROOT, root])
  const probe = stripTypeScriptTypes(readFileSync(PROBE, 'utf8'), { mode: 'strip' })
  writeFileSync(join(root, 'app/src/standin/main.js'), probe)
  const squashed = join(directory, 'probe.squashfs')
  await new Toolchain(join(WORK, 'tools')).squash(root, squashed, readInputs().epoch)
  const disk = makeVerityDisk(copyBytes(readFileSync(squashed)))
  const path = join(directory, 'probe.img')
  writeFileSync(path, disk.bytes)
  rmSync(root, { recursive: true })
  rmSync(squashed)
  return { path, rootHash: disk.rootHash, rootBlocks: disk.dataBlocks }
}
