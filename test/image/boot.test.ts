import { execFileSync } from 'node:child_process'
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { once } from 'node:events'
import { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { readImage } from '../../src/cli/image/build-image.ts'
import { commandLine } from '../../src/cli/image/command-line.ts'
import { bootGuest, IMAGE_DIR, untilShown, type Guest } from './guest.ts'

/** Boots the built image under QEMU's emulation: some minutes, so only when asked for (npm run image:test). */

const CONFIG = join(import.meta.dirname, '../../config/local.json')
const ADMIN_TOKEN = 'admin-token-of-the-image-test'
const BOOT_MS = 240_000

const reason = whyNot()
if (reason !== undefined) console.log(`the image is not booted: ${reason}`)

function whyNot(): string | undefined {
  if (process.env['CMR_IMAGE_TEST'] === undefined) return 'ask for it with "npm run image:test"'
  if (!existsSync(join(IMAGE_DIR, 'image.json'))) return 'build it first with "npm run image"'
  try {
    execFileSync('qemu-system-x86_64', ['--version'])
    return undefined
  } catch {
    return 'qemu-system-x86_64 is not installed (apt-get install qemu-system-x86)'
  }
}

/** One HTTPS call into the guest, whose certificate nobody has signed. */
async function call(guest: Guest, path: string, token: string, body: unknown): Promise<unknown> {
  const outgoing = request({
    host: '127.0.0.1',
    port: guest.port,
    path,
    rejectUnauthorized: false,
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
  })
  outgoing.end(JSON.stringify(body))
  const [response] = z
    .tuple([z.instanceof(IncomingMessage)])
    .parse(await once(outgoing, 'response'))
  return JSON.parse(await text(response))
}

describe.skipIf(reason !== undefined)('the guest image', () => {
  let folder = ''
  const guests: Guest[] = []
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'cmr-image-'))
    writeFileSync(join(folder, 'secrets.json'), JSON.stringify({ ADMIN_TOKEN }))
  })
  afterAll(async () => {
    await Promise.all(guests.map((guest) => guest.stop()))
    rmSync(folder, { recursive: true })
  })

  async function boot(configPath: string, rootDisk = join(IMAGE_DIR, 'root.img')): Promise<Guest> {
    const { root_hash: rootHash, root_blocks: rootBlocks } = readImage(IMAGE_DIR)
    const guest = await bootGuest({
      commandLine: commandLine({ rootHash, rootBlocks }, readFileSync(CONFIG)),
      configPath,
      secretsPath: join(folder, 'secrets.json'),
      rootDisk,
    })
    guests.push(guest)
    return guest
  }

  it('serves a chat request to the host', { timeout: BOOT_MS }, async () => {
    const guest = await boot(CONFIG)
    await untilShown(guest, /npm run admin/)
    const customer = await call(guest, '/admin/customers', ADMIN_TOKEN, {
      name: 'image test',
      billing: 'prepaid',
      balance_eur: '1.00',
    })
    const { id } = z.object({ id: z.string() }).parse(customer)
    const made = await call(guest, `/admin/customers/${id}/keys`, ADMIN_TOKEN, { name: 'test' })
    const { key } = z.object({ key: z.string() }).parse(made)
    const completion = await call(guest, '/v1/chat/completions', key, {
      model: 'glm-5',
      messages: [{ role: 'user', content: 'Are you in there?' }],
    })
    expect(completion).toMatchObject({
      object: 'chat.completion',
      choices: [{ finish_reason: 'stop' }],
      service: { receipt_id: expect.any(String), failover: false },
    })
    await guest.stop()
  })

  it('ends when the host gives another configuration', { timeout: BOOT_MS }, async () => {
    const other = join(folder, 'other.json')
    writeFileSync(other, `${readFileSync(CONFIG, 'utf8')} `)
    const guest = await boot(other)
    await guest.ended
    expect(guest.console()).toContain(
      'guest: the configuration is not the one on the measured command line',
    )
    expect(guest.console()).toContain('init: the service ended with status 1')
  })

  it(
    'stops at the first block of its disk that is not the measured one',
    { timeout: BOOT_MS },
    async () => {
      const disk = join(folder, 'root.img')
      copyFileSync(join(IMAGE_DIR, 'root.img'), disk)
      const file = openSync(disk, 'r+')
      writeSync(file, Buffer.from([0xff]), 0, 1, 100)
      closeSync(file)
      const guest = await boot(CONFIG, disk)
      await guest.ended
      expect(guest.console()).toMatch(/dm-verity device corrupted|data block 0 is corrupted/)
      expect(guest.console()).not.toContain('the service is started')
    },
  )
})
