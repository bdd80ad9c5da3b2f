import { appendFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { emptyLargeLog, setAsideLargeLog } from '../stack/large-log.ts'
import type { StateDir } from '../stack/state-dir.ts'
import { consoleLine, type SupervisorEvent } from './console-line.ts'
import { LogFollower } from './log-follower.ts'

/**
 * Logs a line for the operator of this machine. Where strangers can read the console, it shows only the event and its
 * reason.
 */
export type ServeLog = (text: string, event?: SupervisorEvent, reason?: string) => void

/**
 * Opens a log that prints each line and appends it, with its time, to `log/serve.log`. Where appending fails, as on a
 * full disk, the line is only printed: logging must never prevent a part from being restarted.
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
      // The line is on the console.
    }
  }
}

/** Prints one JSON line of the supervisor to a console that strangers can read. */
export function printEvent(event: SupervisorEvent, reason?: string): void {
  const fields = { at: new Date().toISOString(), event, reason: reason?.replaceAll('\n', ' ') }
  printAllowed(JSON.stringify(fields))
}

const LOOK_MS = 500
const EMPTY_MS = 10_000

/**
 * Limits the size of all parts' logs while they run, and prints the lines of some of them, as far as strangers may see
 * them.
 * @param shown the parts whose logs are printed
 * @returns a function that prints the remaining lines and stops
 */
export function tendLogs(state: StateDir, shown: readonly string[]): () => void {
  const directory = state.directory('log')
  const followers = shown.map(
    (part) => new LogFollower(join(directory, `${part}.log`), printAllowed),
  )
  const look = () => {
    for (const follower of followers) follower.look()
  }
  const timers = [
    ...(followers.length === 0 ? [] : [setInterval(look, LOOK_MS)]),
    setInterval(() => {
      // Print the lines before they are removed.
      look()
      emptyLargeLogs(directory)
    }, EMPTY_MS),
  ]
  for (const timer of timers) timer.unref()
  return () => {
    for (const timer of timers) clearInterval(timer)
    look()
  }
}

/** Logs that cannot be read or opened at the moment are skipped: the router serves all the same. */
function emptyLargeLogs(directory: string): void {
  const logs = unlessFailed(() => readdirSync(directory)) ?? []
  for (const name of logs.filter((one) => one.endsWith('.log'))) {
    unlessFailed(() => emptyLargeLog(join(directory, name)))
  }
}

function unlessFailed<Result>(work: () => Result): Result | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

function printAllowed(text: string): void {
  const line = consoleLine(text)
  if (line !== undefined) console.log(line)
}
