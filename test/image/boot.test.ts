import {
  closeSync,
  copyFileSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { callGuest } from './call-guest.ts'
import {
  BOOT_MS,
  bootGuest,
  IMAGE_DIR,
  untilGuest,
  untilSaid,
  whyNoGuest,
  type Guest,
  type GuestPlan,
} from './guest.ts'
import { ADMIN_TOKEN, makeGuestWorld, type GuestWorld } from './guest-world.ts'

/** Boots the built image under QEMU's emulation: some minutes, so only when asked for (npm run image:test). */

const reason = whyNoGuest()
if (reason !== undefined) console.log(`the image is not booted: ${reason}`)

/** In QEMU 7.2's emulation a kernel crashes now and then, at random, before it has said a word. */
const OPTIONS = { timeout: BOOT_MS, retry: 1 }

describe.skipIf(reason !== undefined)('the guest image', OPTIONS, () => {
  let world: GuestWorld
  const guests: Guest[] = []
  beforeAll(async () => {
    world = await makeGuestWorld()
  }, BOOT_MS)
  afterAll(async () => {
    await Promise.all(guests.map((guest) => guest.stop()))
    world.remove()
  })

  async function boot(changes: Partial<GuestPlan>): Promise<Guest> {
    const guest = await bootGuest({ ...world.plan(), ...changes })
    guests.push(guest)
    return guest
  }

  /** A table with OperationRegion (EVIL, SystemMemory, 0x01000000, 0x1000), which is in the middle of the guest's memory. */
  function regionInMemory(): string {
    const code = [0x5b, 0x80, ...Buffer.from('EVIL'), 0, 0x0c, 0, 0, 0, 1, 0x0b, 0, 0x10]
    writeFileSync(world.at('region.aml'), Uint8Array.from(code))
    return world.at('region.aml')
  }

  /** A root disk of which one byte differs. */
  function damagedRoot(): string {
    const disk = world.at('root.img')
    copyFileSync(join(IMAGE_DIR, 'root.img'), disk)
    const file = openSync(disk, 'r+')
    writeSync(file, Buffer.from([0xff]), 0, 1, 100)
    closeSync(file)
    return disk
  }

  /** What the guest said of its ACPI tables, without the time. */
  function reportsOf(guest: Guest): unknown[] {
    const lines = guest.console().split('\r\n')
    return lines
      .filter((line) => line.includes('"event":"acpi_tables"'))
      .map((line) => ({ ...JSON.parse(line), at: undefined }))
  }

  it('ends when the host gives another configuration', async () => {
    const other = world.at('other.json')
    writeFileSync(other, `${readFileSync(world.at('router.json'), 'utf8')} `)
    const guest = await boot({ items: { config: other } })
    await guest.ended
    expect(guest.console()).toContain(
      '"reason":"the configuration is not the one on the measured command line"',
    )
    expect(guest.console()).toContain('{"event":"service_ended","status":1}')
  })

  it('ends when the host hands secrets to a guest in production mode', async () => {
    const { items } = world.plan()
    const guest = await boot({ items: { ...items, secrets: world.at('secrets.json') } })
    await guest.ended
    expect(guest.console()).toContain(
      'in production mode a guest takes them by a document of its operator only',
    )
  })

  it('runs no program from a secondary ACPI table of the host, and says which one it ran', async () => {
    const { items } = world.plan()
    // It ends soon, and not for its tables.
    const plan = { items: { ...items, secrets: world.at('secrets.json') } }
    const plain = await boot(plan)
    await plain.ended
    const table = ['-acpitable', `sig=SSDT,data=${regionInMemory()}`]
    const given = await boot({ ...plan, host: table })
    await given.ended
    const [report] = reportsOf(plain)
    expect(report).toMatchObject({ tables: 1, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) })
    expect(reportsOf(given)).toEqual([report])
  })

  it('ends when an ACPI table names memory of the guest as an operation region', async () => {
    const guest = await boot({ host: ['-acpitable', `sig=OSDT,data=${regionInMemory()}`] })
    await guest.ended
    expect(reportsOf(guest)).toMatchObject([
      { tables: 2, memory: expect.arrayContaining(['1000000+1000']) },
    ])
    expect(guest.console()).toContain(
      '"event":"guest_refused","reason":"an ACPI table of the host claims memory of this guest"',
    )
  })

  it('ends when its kernel is not locked down', async () => {
    const commandLine = world.plan().commandLine.replace('lockdown=confidentiality ', '')
    const guest = await boot({ commandLine })
    await guest.ended
    expect(guest.console()).toContain('"message":"the kernel is not locked down"')
  })

  it('ends when its clock is behind the trust bundle', async () => {
    const guest = await boot({ host: ['-rtc', 'base=2026-01-01T00:00:00'] })
    await guest.ended
    expect(guest.console()).toContain('"event":"start_refused"')
    expect(guest.console()).toContain('trust_bundle_dates')
    expect(guest.console()).not.toContain('"event":"sealed"')
  })

  it('stops at the first block of its disk that is not the measured one, without a word', async () => {
    const guest = await boot({ rootDisk: damagedRoot() })
    await guest.ended
    // The kernel's own message, with what it has in its registers, stays inside.
    expect(guest.console()).toBe('')
  })

  it.each([
    ['leaves no last message of its kernel in a store of the host', '', false],
    ['would leave one there without erst_disable', 'erst_disable ', true],
  ])('%s', async (_what, without, left) => {
    const records = world.at('error-records')
    rmSync(records, { force: true })
    const guest = await boot({
      rootDisk: damagedRoot(),
      commandLine: world.plan().commandLine.replace(without, ''),
      host: [
        '-object',
        `memory-backend-file,id=records,mem-path=${records},size=65536,share=on`,
        '-device',
        'acpi-erst,memdev=records',
      ],
    })
    await guest.ended
    expect(guest.console()).toBe('')
    // How a record begins (UEFI, Appendix N).
    expect(readFileSync(records, 'latin1').includes('CPER')).toBe(left)
  })

  it('is a rehearsal in local mode, whose welcome with a key is not shown to the host', async () => {
    const config = world.at('local.json')
    copyFileSync(join(import.meta.dirname, '../../config/local.json'), config)
    const secrets = world.at('local-secrets.json')
    writeFileSync(secrets, JSON.stringify({ ADMIN_TOKEN }))
    const guest = await boot({
      commandLine: world.commandLineFor(readFileSync(config)),
      items: { config, secrets, 'simulated-chip': world.at('chip.json') },
    })
    await untilSaid(guest, 'acpi_tables')
    await untilGuest(guest, () =>
      callGuest(guest, 'GET', '/healthz', ADMIN_TOKEN, undefined).then(
        ({ status }) => status === 200,
        () => false,
      ),
    )
    expect(guest.console()).not.toContain('API key')
    expect(guest.console()).not.toContain(ADMIN_TOKEN)
  })
})
