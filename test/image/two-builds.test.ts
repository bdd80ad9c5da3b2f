import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { compileProgram, makeInitrd } from '../../src/cli/image/initrd.ts'
import { readInputs } from '../../src/cli/image/inputs.ts'
import { unpackPackages } from '../../src/cli/image/packages.ts'
import { Toolchain } from '../../src/cli/image/toolchain.ts'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'

/**
 * The short form of `npm run image -- --twice`: PID 1, run-as and the initrd, in two folders. The root disk, with
 * everything from npm, is left to the long one.
 */

const CACHE = join(PROJECT_DIR, 'dist/image-work/debian')

const reason = whyNot()
if (reason !== undefined) console.log(`the initrd is not built twice: ${reason}`)

function whyNot(): string | undefined {
  if (process.env['CMR_IMAGE_TEST'] === undefined) return 'ask for it with "npm run image:test"'
  if (!existsSync(CACHE)) return 'Debian\'s packages are not here: build first with "npm run image"'
  return undefined
}

const folders: string[] = []

async function build() {
  const folder = mkdtempSync(join(tmpdir(), 'cmr-build-'))
  folders.push(folder)
  symlinkSync(CACHE, join(folder, 'debian'))
  const inputs = readInputs()
  const { tool, kernel } = await unpackPackages(folder, inputs, () => {})
  const toolchain = new Toolchain(tool)
  mkdirSync(join(folder, 'programs'))
  const compile = (name: string) => {
    const sources = join(PROJECT_DIR, 'image', name)
    return compileProgram(toolchain, sources, join(folder, 'programs', name))
  }
  const init = await compile('init')
  return { initrd: makeInitrd(init, kernel, inputs), runAs: await compile('run-as') }
}

describe.skipIf(reason !== undefined)('two builds in two folders', { timeout: 600_000 }, () => {
  afterAll(() => {
    for (const folder of folders) rmSync(folder, { recursive: true })
  })

  it('have the same bytes', async () => {
    const one = await build()
    const other = await build()
    expect(Buffer.from(one.initrd).equals(other.initrd)).toBe(true)
    expect(Buffer.from(one.runAs).equals(other.runAs)).toBe(true)
  })
})
