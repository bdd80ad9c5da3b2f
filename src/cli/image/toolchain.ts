import { join } from 'node:path'
import { run } from './run.ts'

const LIBRARIES = 'usr/lib/x86_64-linux-gnu'
const GCC = 'usr/lib/gcc/x86_64-linux-gnu/14'

/** The flags for every C file: strict warnings, and checks that turn an overrun into a crash. */
const COMPILE_FLAGS = flags(`
  -quiet -std=gnu17 -O2 -fno-pie -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fcf-protection
  -fzero-call-used-regs=used-gpr -ftrivial-auto-var-init=zero
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Werror`)

const LINK_FLAGS = flags(`
  -static --build-id=none --fatal-warnings -z relro -z now -z noexecstack -z separate-code`)

/** Everything owned by root, with one time stamp, in a fixed order. */
const SQUASH_FLAGS = flags(`
  -noappend -quiet -no-progress -comp zstd -Xcompression-level 15 -b 128K
  -all-root -no-xattrs -no-exports -reproducible`)

/**
 * Runs programs of the pinned packages with the pinned C library, so that the machine's own programs do not affect the
 * image.
 */
export class Toolchain {
  readonly #tools: string

  constructor(tools: string) {
    this.#tools = tools
  }

  /** Compiles C files of a directory into one static program. */
  async compile(directory: string, names: readonly string[], out: string): Promise<void> {
    const objects = await Promise.all(names.map((name) => this.#compileOne(directory, name, out)))
    const library = (name: string) => this.#path(LIBRARIES, name)
    const support = (name: string) => this.#path(GCC, name)
    const start = [library('crt1.o'), library('crti.o'), support('crtbeginT.o')]
    const libraries = [library('libc.a'), support('libgcc.a'), support('libgcc_eh.a')]
    const end = [support('crtend.o'), library('crtn.o')]
    const parts = [...start, ...objects, '--start-group', ...libraries, '--end-group', ...end]
    await this.#run('usr/bin/x86_64-linux-gnu-ld', [...LINK_FLAGS, '-o', out, ...parts])
  }

  /** Packs a directory into a squashfs. */
  async squash(source: string, out: string, epoch: number): Promise<void> {
    const times = ['-all-time', String(epoch), '-mkfs-time', String(epoch)]
    await this.#run('usr/bin/mksquashfs', [source, out, ...SQUASH_FLAGS, ...times])
  }

  async #compileOne(directory: string, name: string, out: string): Promise<string> {
    const base = `${out}.${name.replace(/\.c$/, '')}`
    const includes = [
      this.#path(GCC, 'include'),
      this.#path('usr/include/x86_64-linux-gnu'),
      this.#path('usr/include'),
    ]
    const compiler = 'usr/libexec/gcc/x86_64-linux-gnu/14/cc1'
    const include = ['-nostdinc', ...includes.flatMap((path) => ['-isystem', path])]
    // Uses a relative name, so that the object contains no path of this machine.
    const args = [...COMPILE_FLAGS, ...include, name, '-o', `${base}.s`]
    await this.#run(compiler, args, directory)
    await this.#run('usr/bin/x86_64-linux-gnu-as', ['--64', `${base}.s`, '-o', `${base}.o`])
    return `${base}.o`
  }

  async #run(program: string, args: readonly string[], cwd?: string): Promise<void> {
    const loader = this.#path('usr/lib64/ld-linux-x86-64.so.2')
    const prefix = ['--library-path', this.#path(LIBRARIES), this.#path(program)]
    await run(loader, [...prefix, ...args], cwd === undefined ? {} : { cwd })
  }

  #path(...parts: readonly string[]): string {
    return join(this.#tools, ...parts)
  }
}

function flags(text: string): string[] {
  return text.trim().split(/\s+/)
}
