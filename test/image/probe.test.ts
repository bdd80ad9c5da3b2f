import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { commandLine } from '../../src/cli/image/command-line.ts'
import { freePort } from '../support/free-port.ts'
import { openProbeSession, type ProbeSession } from '../support/probe-session.ts'
import { BOOT_MS, bootGuest, untilGuest, untilSaid, whyNoGuest, type Guest } from './guest.ts'
import { makeGuestWorld, type GuestWorld } from './guest-world.ts'
import { unseal } from './operator.ts'
import { makeProbeDisk, whyNoRoot } from './probe-disk.ts'

/** What an attacker who has taken over a worker can reach, tried from inside the guest under the worker's account. */

const reason = whyNoGuest() ?? whyNoRoot()
if (reason !== undefined) console.log(`nothing is tried inside the guest: ${reason}`)

const SUPERVISOR = 10_001
const DAEMON = 10_002
const WORKER = 10_003

describe.skipIf(reason !== undefined)('inside the guest', { timeout: BOOT_MS }, () => {
  let world: GuestWorld
  let guest: Guest
  let session: ProbeSession

  beforeAll(async () => {
    world = await makeGuestWorld()
    session = await openProbeSession(await freePort())
    const identity = JSON.parse(readFileSync(world.at('standin'), 'utf8')).identity
    // Its first port is what the probe is given.
    writeFileSync(
      world.at('standin'),
      JSON.stringify({ port: session.port, tls_port: 9101, identity }),
    )
    const { path, ...root } = await makeProbeDisk(world.at('.'))
    guest = await bootGuest({
      ...world.plan(),
      rootDisk: path,
      commandLine: commandLine(root, readFileSync(world.at('router.json'))),
    })
    await untilSaid(guest, 'sealed')
    const { status, line } = await unseal(world, guest)
    if (status !== 0) throw new Error(line)
    await untilSaid(guest, 'serving')
    let there = false
    void session.connected.then(() => (there = true))
    await untilGuest(guest, () => there)
  }, BOOT_MS)
  afterAll(async () => {
    session.close()
    await guest.stop()
    world.remove()
  })

  it("the worker's account has its ledger, and sees its own processes alone", async () => {
    expect(await session.ask('account')).toBe(WORKER)
    expect(await session.ask('owner', '/var/lib/cmr/storage')).toBe(`${WORKER} 700`)
    expect(await session.ask('list', '/var/lib/cmr/storage')).toBe('ok')
    expect(await session.ask('processes', '/proc')).toEqual([WORKER])
  })

  it.each([
    ['owner', '/var/lib/cmr/enclave', `${DAEMON} 700`],
    ['list', '/var/lib/cmr/enclave', 'EACCES'],
    ['read', '/var/lib/cmr/enclave/any', 'EACCES'],
    ['owner', '/var/lib/cmr', `${SUPERVISOR} 711`],
    ['list', '/var/lib/cmr', 'EACCES'],
    ['write', '/var/lib/cmr/new', 'EACCES'],
    ['read', '/var/lib/cmr/serving.json', 'EACCES'],
    ['list', '/var/lib/cmr/log', 'EACCES'],
    ['owner', '/dev/cmr-data', `${SUPERVISOR} 600`],
    ['read', '/dev/cmr-data', 'EACCES'],
    ['owner', '/run/cmr/volume', `${SUPERVISOR} 600`],
    ['connect', '/run/cmr/volume', 'EACCES'],
    ['read', '/run/cmr/iomem', 'EACCES'],
    ['read', '/proc/1/environ', 'ENOENT'],
    ['signal', '1', 'EPERM'],
    ['write', '/app/src/cli/main.js', 'EROFS'],
    ['write', '/usr/bin/run-as', 'EROFS'],
    ['write', '/proc/sys/kernel/core_pattern', 'EROFS'],
    ['text', '/proc/sys/kernel/core_pattern', '/dev/null'],
    ['text', '/proc/sys/kernel/sysrq', '0'],
    ['text', '/proc/sys/kernel/modules_disabled', '1'],
    ['text', '/proc/sys/kernel/kexec_load_disabled', '1'],
    ['text', '/proc/sys/kernel/yama/ptrace_scope', '3'],
    ['text', '/proc/sys/fs/suid_dumpable', '0'],
    ['text', '/proc/sys/user/max_user_namespaces', '0'],
    ['text', '/proc/self/limits', expect.stringMatching(/^Max core file size +0 +0 /m)],
    ['text', '/proc/self/status', expect.stringMatching(/^CapEff:\t0+$/m)],
    ['text', '/proc/self/status', expect.stringMatching(/^NoNewPrivs:\t1$/m)],
    // Its header alone: there is no swap.
    ['text', '/proc/swaps', expect.stringMatching(/^Filename[^\n]*$/)],
    ['list', '/sys/firmware', 'ENOENT'],
    ['read', '/dev/mem', 'ENOENT'],
    ['read', '/dev/vda', 'ENOENT'],
    ['read', '/dev/ttyS0', 'ENOENT'],
  ])('%s %s: %s', async (what, at, expected) => {
    expect(await session.ask(what, at)).toEqual(expected)
  })
})
