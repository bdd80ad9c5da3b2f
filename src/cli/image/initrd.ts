import { globSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { copyBytes, utf8, type Bytes } from '../../protocol/bytes.ts'
import { writeCpio, type CpioEntry } from './cpio.ts'
import { ImageError } from './image-error.ts'
import type { ImageInputs } from './inputs.ts'
import type { Toolchain } from './toolchain.ts'

/** Compiles one of the guest's own programs from the C files of a directory. */
export async function compileProgram(
  toolchain: Toolchain,
  sources: string,
  out: string,
): Promise<Bytes> {
  const names = readdirSync(sources).filter((name) => name.endsWith('.c'))
  await toolchain.compile(sources, names.toSorted(), out)
  return copyBytes(readFileSync(out))
}

/** The initial file system: only PID 1, the kernel modules that it loads, and their order. */
export function makeInitrd(init: Bytes, kernel: string, inputs: ImageInputs): Bytes {
  const modules = inputs.modules.map((name) => ({ name, path: findModule(kernel, name) }))
  const order = modules.map(({ name, path }) => (name.startsWith('?') ? '?' : '') + basename(path))
  const directories = ['dev', 'modules', 'proc', 'root', 'sys']
  const entries: CpioEntry[] = [
    ...directories.map((path) => ({ path, mode: 0o755 })),
    { path: 'init', mode: 0o755, bytes: init },
    { path: 'modules/order', mode: 0o644, bytes: utf8(`${order.join('\n')}\n`) },
    ...modules.map(({ path }) => ({
      path: `modules/${basename(path)}`,
      mode: 0o644,
      bytes: copyBytes(readFileSync(path)),
    })),
  ]
  return writeCpio(entries, inputs.epoch)
}

function findModule(kernel: string, name: string): string {
  const file = `${name.replace('?', '')}.ko.xz`
  const [found, another] = globSync(`usr/lib/modules/*/kernel/**/${file}`, { cwd: kernel })
  if (found === undefined || another !== undefined) {
    throw new ImageError(`the kernel has not exactly one module ${file}`)
  }
  return join(kernel, found)
}
