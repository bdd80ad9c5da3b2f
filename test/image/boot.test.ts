import { closeSync, copyFileSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
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

describe.skipIf(reason !== undefined)('the guest image', { timeout: BOOT_MS }, () => {
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

  it('stops at the first block of its disk that is not the measured one, without a word', async () => {
    const disk = world.at('root.img')
    copyFileSync(join(IMAGE_DIR, 'root.img'), disk)
    const file = openSync(disk, 'r+')
    writeSync(file, Buffer.from([0xff]), 0, 1, 100)
    closeSync(file)
    const guest = await boot({ rootDisk: disk })
    await guest.ended
    // The kernel's own message, with what it has in its registers, stays inside.
    expect(guest.console()).toBe('')
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
