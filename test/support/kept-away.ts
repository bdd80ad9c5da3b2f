import { readdirSync, readlinkSync, realpathSync } from 'node:fs'
import { join } from 'node:path'

/** Far shorter than a part takes to come up. */
const LOOK_EVERY_MS = 20

/**
 * Keeps a part of a router away: it is killed, and so is each that is started in its place.
 * @returns lets the next one come up
 */
export function keepAway(stateDir: string, part: 'enclave'): () => void {
  const log = realpathSync(join(stateDir, 'log', `${part}.log`))
  const killAll = () => {
    for (const pid of writersTo(log)) killIfThere(pid)
  }
  killAll()
  const timer = setInterval(killAll, LOOK_EVERY_MS)
  return () => clearInterval(timer)
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended meanwhile.
  }
}

/** The processes whose standard output is this file. */
function writersTo(path: string): readonly number[] {
  const running = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return running.filter((pid) => outputOf(pid) === path).map(Number)
}

/** Undefined for a process that has ended meanwhile, or has none. */
function outputOf(pid: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/fd/1`)
  } catch {
    return undefined
  }
}
