import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Below the range from which systems choose ports themselves (Linux: 32768 and up; IANA: 49152 and up), so that no
 * server that asks for port 0, and no outgoing connection, takes the port before the program under test listens on it.
 */
const LOWEST = 10_240
const HIGHEST = 32_767
const ATTEMPTS = 50

/**
 * A loopback port for a program that must be given a number. Where a test can read the port after the start, port 0 is
 * better.
 */
export async function freePort(attempts = ATTEMPTS): Promise<number> {
  const port = randomInt(LOWEST, HIGHEST + 1)
  if (await isFree(port)) return port
  if (attempts === 1) throw new Error('no free port was found')
  return freePort(attempts - 1)
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer().listen(port, '127.0.0.1')
  const heard = await Promise.race([
    once(probe, 'listening').then(() => true),
    once(probe, 'error').then(() => false),
  ])
  if (!heard) return false
  probe.close()
  await once(probe, 'close')
  return true
}
