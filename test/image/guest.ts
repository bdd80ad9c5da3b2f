import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../support/free-port.ts'

export const IMAGE_DIR = join(import.meta.dirname, '../../dist/image')

/** Emulation is slow, and slower beside other work. */
export const BOOT_MS = 900_000

export interface GuestPlan {
  readonly commandLine: string
  readonly rootDisk: string
  /** A file with a disk for the ledger. */
  readonly dataDisk?: string | undefined
  /** More of what a host can do to a machine, as QEMU's arguments. */
  readonly host?: readonly string[]
  /** What the host hands over: name to file. */
  readonly items: Readonly<Record<string, string>>
  /** A path for the socket of QEMU's monitor. */
  readonly monitor: string
}

/** A guest under emulation. */
export interface Guest {
  /** Its port 443 on this machine. */
  readonly port: number
  /** What it wrote to its console. */
  console(): string
  /** Resolves when it has switched itself off. */
  readonly ended: Promise<void>
  /** A power cut. */
  stop(): Promise<void>
  pressPowerButton(): Promise<void>
}

/** Why no guest can be booted here, or undefined. */
export function whyNoGuest(): string | undefined {
  if (process.env['CMR_IMAGE_TEST'] === undefined) return 'ask for it with "npm run image:test"'
  if (!existsSync(join(IMAGE_DIR, 'image.json'))) return 'build it first with "npm run image"'
  try {
    execFileSync('qemu-system-x86_64', ['--version'])
    return undefined
  } catch {
    return 'qemu-system-x86_64 is not installed (apt-get install qemu-system-x86)'
  }
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
    `-serial stdio -qmp unix:${plan.monitor},server=on,wait=off ` +
    `-kernel ${IMAGE_DIR}/vmlinuz -initrd ${IMAGE_DIR}/initrd.cpio ` +
    `-drive file=${plan.rootDisk},if=virtio,format=raw,readonly=on ` +
    (plan.dataDisk === undefined ? '' : `-drive file=${plan.dataDisk},if=virtio,format=raw `) +
    `-netdev user,id=outside,hostfwd=tcp:127.0.0.1:${port}-:443 -device virtio-net-pci,netdev=outside`
  const network = ['-fw_cfg', 'name=opt/cmr/network,string=10.0.2.15/24 10.0.2.2 10.0.2.3']
  const items = Object.entries(plan.items).flatMap(([name, file]) => [
    '-fw_cfg',
    `name=opt/cmr/${name},file=${file}`,
  ])
  const host = plan.host ?? []
  const args = [...flags.split(' '), ...network, ...items, ...host, '-append', plan.commandLine]
  const qemu = spawn('qemu-system-x86_64', args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  for (const stream of [qemu.stdout, qemu.stderr]) {
    stream.setEncoding('utf8').on('data', (part: string) => (text += part))
  }
  const ended = once(qemu, 'close').then(() => undefined)
  return {
    port,
    console: () => text,
    ended,
    stop: () => stop(qemu, ended),
    pressPowerButton: () => pressPowerButton(plan.monitor),
  }
}

/** Waits for something; throws with the console's end when the guest ends before. */
export async function untilGuest(
  guest: Guest,
  holds: () => boolean | Promise<boolean>,
): Promise<void> {
  let over = false
  void guest.ended.then(() => (over = true))
  while (!(await holds())) {
    if (over) throw new Error(`the guest ended: ${guest.console().slice(-2000)}`)
    await delay(300)
  }
}

/** Waits for an event on its console. */
export function untilSaid(guest: Guest, event: string): Promise<void> {
  return untilGuest(guest, () => guest.console().includes(`"event":"${event}"`))
}

/** QEMU's machine protocol: the greeting, then one command a line. */
async function pressPowerButton(path: string): Promise<void> {
  const monitor = connect(path)
  let said = ''
  monitor.setEncoding('utf8').on('data', (part: string) => (said += part))
  const answered = async (count: number) => {
    while (said.split('\n').length <= count) await once(monitor, 'data')
  }
  await answered(1)
  monitor.write('{"execute":"qmp_capabilities"}\n')
  await answered(2)
  monitor.write('{"execute":"system_powerdown"}\n')
  await answered(3)
  monitor.destroy()
}

async function stop(qemu: ChildProcess, ended: Promise<void>): Promise<void> {
  qemu.kill('SIGKILL')
  await ended
}
