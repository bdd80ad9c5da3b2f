import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, globSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { emptyDirectory } from '../src/cli/image/empty-directory.ts'
import { compileProgram, makeInitrd } from '../src/cli/image/initrd.ts'
import { readInputs } from '../src/cli/image/inputs.ts'
import { unpackPackages } from '../src/cli/image/packages.ts'
import { Toolchain } from '../src/cli/image/toolchain.ts'
import { PROJECT_DIR } from '../src/host/stack/settings.ts'

/**
 * `npm run bench:disk`: measures the cost of each layer of the data disk, on the image's kernel under QEMU. It prints
 * one JSON line for each: bare disk, dm-crypt, and dm-crypt over dm-integrity as the guest has it. Under emulation the
 * ratios say how much work there is, not how long a real processor needs for it. Arguments are passed on to QEMU, such
 * as `-cpu max`.
 */

const DISK_BYTES = 256 * 1024 * 1024
/** Source files of the guest's PID 1 that the benchmark program needs. */
const SHARED = ['console.c', 'init.h', 'mapper.c', 'mapper.h', 'modules.c', 'text.c']

const work = join(PROJECT_DIR, 'dist/disk-bench')
const inputs = readInputs()
const { tool, kernel } = await unpackPackages(
  join(PROJECT_DIR, 'dist/image-work'),
  inputs,
  (text) => console.error(text),
)
const sources = emptyDirectory(work, 'sources')
for (const name of SHARED) {
  cpSync(join(PROJECT_DIR, 'image/init', name), join(sources, name))
}
cpSync(join(PROJECT_DIR, 'image/disk-bench/main.c'), join(sources, 'main.c'))
const init = await compileProgram(new Toolchain(tool), sources, join(work, 'init'))
writeFileSync(join(work, 'initrd.cpio'), makeInitrd(init, kernel, inputs))

const directory = mkdtempSync(join(tmpdir(), 'cmr-disk-bench-'))
const disk = join(directory, 'disk.img')
writeFileSync(disk, '')
truncateSync(disk, DISK_BYTES)
const [vmlinuz = ''] = globSync(`${kernel}/boot/vmlinuz-*`)
const machine =
  `-accel tcg -cpu Nehalem,-cx16 -smp 2 -m 1024 -nodefaults -no-user-config -display none -no-reboot -serial stdio ` +
  `-kernel ${vmlinuz} -initrd ${join(work, 'initrd.cpio')} ` +
  `-drive file=${disk},if=virtio,format=raw,cache=unsafe`
const args = [...machine.split(' '), '-append', 'console=null quiet', ...process.argv.slice(2)]
const qemu = spawn('qemu-system-x86_64', args, { stdio: ['ignore', 'pipe', 'inherit'] })
for await (const line of createInterface({ input: qemu.stdout })) console.log(line)
if (qemu.exitCode === null) await once(qemu, 'close')
rmSync(directory, { recursive: true })
