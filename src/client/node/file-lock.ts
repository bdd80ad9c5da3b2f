import { link, mkdtemp, open, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 10

/**
 * A lock that one holder keeps for this many polls, five seconds, was left behind by a program that ended while it held
 * the lock.
 */
const LEFT_OVER_POLLS = 500

/**
 * Runs `work`, which reads and replaces a file, while no other caller does, in this program or another. The lock is a
 * file beside it, because Node 20, Bun and Deno have no other kind of lock in common.
 * @param work is given a function that tells whether the lock is still held: a program that stalls for five seconds
 *   loses it
 */
export async function withFileLock<T>(
  path: string,
  work: (isHeld: () => Promise<boolean>) => Promise<T>,
): Promise<T> {
  const lock = `${path}.lock`
  const own = await take(lock)
  const isHeld = async () => (await identify(lock)) === own
  try {
    return await work(isHeld)
  } finally {
    if (await isHeld()) await rm(lock, { force: true })
  }
}

/** @returns the identity of the lock that was created */
async function take(lock: string): Promise<string> {
  let [holder, polls] = ['', 0]
  while (!(await create(lock))) {
    const seen = await identify(lock)
    polls = seen === holder ? polls + 1 : 0
    holder = seen
    await (polls < LEFT_OVER_POLLS ? sleep(POLL_MS) : clear(lock, seen))
  }
  return identify(lock)
}

/** Removes a stale lock, unless another program did so first and has created a lock of its own. */
async function clear(lock: string, leftOver: string): Promise<void> {
  const folder = await mkdtemp(`${lock}.`)
  try {
    const aside = join(folder, 'lock')
    await rename(lock, aside)
    if ((await identify(aside)) !== leftOver) await link(aside, lock)
  } catch (error) {
    // The lock is gone, or there is a new one; the caller looks again.
    if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'EEXIST') throw error
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function create(lock: string): Promise<boolean> {
  try {
    await (await open(lock, 'wx', 0o600)).close()
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw error
  }
}

/** The identity of the lock; empty where it no longer exists. */
async function identify(lock: string): Promise<string> {
  try {
    const { ino, mtimeMs } = await stat(lock)
    return `${ino} ${mtimeMs}`
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return ''
    throw error
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
