import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { setAsideLargeLog } from '../stack/large-log.ts'
import type { StateDir } from '../stack/state-dir.ts'
import { consoleLine, type SupervisorEvent } from './console-line.ts'
import { LogFollower } from './log-follower.ts'

/**
 * Logs a line for the operator of this machine. Where the console is for strangers, the event alone is shown there, and
 * its reason.
 */
export type ServeLog = (text: string, event?: SupervisorEvent, reason?: string) => void

/**
 * Prints a line, and appends it with its time to `log/serve.log`. Where it cannot be appended, as on a full disk, it is
 * printed alone: what is told of a part must never keep that part from being restarted.
 */
export function openServeLog(state: StateDir, jsonConsole: boolean): ServeLog {
  const file = join(state.directory('log'), 'serve.log')
  setAsideLargeLog(file)
  return (text, event, reason) => {
    if (!jsonConsole) console.log(text)
    else if (event !== undefined) printEvent(event, reason)
    try {
      appendFileSync(file, `${new Date().toISOString()} ${text.trim()}\n`, { mode: 0o600 })
    } catch {
      // The console has it.
    }
  }
}

/** One JSON line of the supervisor on a console that strangers read. */
export function printEvent(event: SupervisorEvent, reason?: string): void {
  const fields = { at: new Date().toISOString(), event, reason: reason?.replaceAll('\n', ' ') }
  printAllowed(JSON.stringify(fields))
}

const LOOK_MS = 500

/**
 * Shows what the logs of daemon and workers hold, as far as strangers may see it.
 * @returns a function that shows the rest and ends it
 */
export function showPartLogs(state: StateDir, parts: readonly string[]): () => void {
  const directory = state.directory('log')
  const followers = parts.map(
    (part) => new LogFollower(join(directory, `${part}.log`), printAllowed),
  )
  const look = () => {
    for (const follower of followers) follower.look()
  }
  const timer = setInterval(look, LOOK_MS)
  timer.unref()
  return () => {
    clearInterval(timer)
    look()
  }
}

function printAllowed(text: string): void {
  const line = consoleLine(text)
  if (line !== undefined) console.log(line)
}
