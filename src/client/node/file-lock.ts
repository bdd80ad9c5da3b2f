import { link, mkdtemp, open, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 10

/** A lock that one holder has for this many polls, five seconds, was left over by a program that ended in between. */
const LEFT_OVER_POLLS = 500

/**
 * Runs something that reads and replaces a file while nobody else does, in this program or another one. The lock is a file
 * beside it, because Node 20, Bun and Deno have no other in common.
 * @param work may ask whether the lock is still its own: a program that stands still for five seconds loses it
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

/** @returns which lock it made */
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

/** Removes a lock that was left over, unless another program did so first and has one of its own there. */
async function clear(lock: string, leftOver: string): Promise<void> {
  const folder = await mkdtemp(`${lock}.`)
  try {
    const aside = join(folder, 'lock')
    await rename(lock, aside)
    if ((await identify(aside)) !== leftOver) await link(aside, lock)
  } catch (error) {
    // It has gone, or there is a new one: who waits looks again.
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

/** Which lock this is; empty where it has just gone. */
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
