import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../support/free-port.ts'

export const IMAGE_DIR = join(import.meta.dirname, '../../dist/image')

export interface GuestPlan {
  readonly commandLine: string
  readonly configPath: string
  readonly secretsPath: string
  readonly rootDisk: string
}

/** A guest under emulation. */
export interface Guest {
  /** Its port 443 on this machine. */
  readonly port: number
  /** What it wrote to its console. */
  console(): string
  /** Resolves when it has switched itself off. */
  readonly ended: Promise<void>
  stop(): Promise<void>
}

/**
 * Emulated processors without CMPXCHG16B: QEMU 7.2 spoils the flags in it, and kernels that use it crash at random
 * places.
 */
const PROCESSOR = 'Nehalem,-cx16'

/** Boots the image as an SNP host would, but under software emulation and without firmware that measures. */
export async function bootGuest(plan: GuestPlan): Promise<Guest> {
  const port = await freePort()
  const flags =
    `-accel tcg -cpu ${PROCESSOR} -smp 2 -m 2048 -nodefaults -no-user-config -display none -no-reboot ` +
    `-serial stdio -kernel ${IMAGE_DIR}/vmlinuz -initrd ${IMAGE_DIR}/initrd.cpio ` +
    `-drive file=${plan.rootDisk},if=virtio,format=raw,readonly=on ` +
    `-netdev user,id=outside,hostfwd=tcp:127.0.0.1:${port}-:443 -device virtio-net-pci,netdev=outside ` +
    `-fw_cfg name=opt/cmr/config,file=${plan.configPath} ` +
    `-fw_cfg name=opt/cmr/secrets,file=${plan.secretsPath}`
  const network = ['-fw_cfg', 'name=opt/cmr/network,string=10.0.2.15/24 10.0.2.2 10.0.2.3']
  const args = [...flags.split(' '), ...network, '-append', plan.commandLine]
  const qemu = spawn('qemu-system-x86_64', args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  for (const stream of [qemu.stdout, qemu.stderr]) {
    stream.setEncoding('utf8').on('data', (part: string) => (text += part))
  }
  const ended = once(qemu, 'close').then(() => undefined)
  return { port, console: () => text, ended, stop: () => stop(qemu, ended) }
}

/** Waits for the console to show something; throws with the console's end when the guest ends before. */
export async function untilShown(guest: Guest, pattern: RegExp): Promise<void> {
  let over = false
  void guest.ended.then(() => (over = true))
  while (!pattern.test(guest.console())) {
    if (over) throw new Error(`the guest ended: ${guest.console().slice(-2000)}`)
    // oxlint-disable-next-line no-await-in-loop -- polling
    await delay(200)
  }
}

async function stop(qemu: ChildProcess, ended: Promise<void>): Promise<void> {
  qemu.kill('SIGKILL')
  await ended
}
