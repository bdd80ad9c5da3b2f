import { open, rm, stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 10

/** A lock that one holder has for this many polls, five seconds, was left over by a program that ended in between. */
const LEFT_OVER_POLLS = 500

/**
 * Runs something that reads and replaces a file while nobody else does, in this program or another one. The lock is a file
 * beside it, because Node 20, Bun and Deno have no other in common.
 */
export async function withFileLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  const lock = `${path}.lock`
  await take(lock)
  try {
    return await work()
  } finally {
    await rm(lock, { force: true })
  }
}

async function take(lock: string): Promise<void> {
  let [holder, polls] = ['', 0]
  // oxlint-disable-next-line no-await-in-loop -- attempts come one after the other
  while (!(await create(lock))) {
    // oxlint-disable-next-line no-await-in-loop
    const seen = await identify(lock)
    polls = seen === holder ? polls + 1 : 0
    holder = seen
    // oxlint-disable-next-line no-await-in-loop
    await (polls < LEFT_OVER_POLLS ? sleep(POLL_MS) : rm(lock, { force: true }))
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
