import { spawn, type ChildProcess } from 'node:child_process'
import { openSync, closeSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { devNull } from 'node:os'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { underAccount, type Account } from './accounts.ts'
import { setAsideLargeLog } from './large-log.ts'

/** Set where the process that started this one also kills this one's children. */
const UNGUARDED = 'CMR_UNGUARDED'

/** A child process of the stack. */
export interface Child {
  readonly pid: number
  readonly process: ChildProcess
  /** Resolves with the reason, as text, when the process has ended. Never rejects. */
  readonly ended: Promise<string>
  /** Sends SIGTERM, and SIGKILL after the grace period. Resolves when it has ended. */
  stop(graceMs: number): Promise<void>
}

export interface ChildCommand {
  /** The account that it runs under, where parts have accounts of their own. */
  readonly account?: Account
  readonly file: string
  readonly args: readonly string[]
  /** The file that standard output and standard error are appended to. */
  readonly logFile: string
  readonly environment?: Readonly<Record<string, string>>
  /** File descriptor 0. */
  readonly stdin: 'ignore' | 'pipe'
  /** File descriptor 3. */
  readonly extra: 'ipc' | 'pipe'
}

/**
 * Starts a child in a session of its own, so that Ctrl-C reaches only the supervisor, which stops its children in
 * order; a guard kills the child at once when the supervisor itself has ended.
 * @throws Error when the executable cannot be started
 */
export async function startChild(command: ChildCommand): Promise<Child> {
  const log = openLog(command.logFile)
  const { account } = command
  const { file, args } = account === undefined ? command : underAccount(account, command)
  const child = spawn(file, args, {
    detached: true,
    env: { ...process.env, ...command.environment },
    stdio: [command.stdin, log, log, command.extra],
  })
  closeSync(log)
  const { promise: spawned, resolve, reject } = Promise.withResolvers<number>()
  child.once('spawn', () => resolve(child.pid ?? 0))
  child.once('error', reject)
  const pid = await spawned
  const guard = startGuard(pid)
  const ended = new Promise<string>((done) => {
    child.once('exit', (code, signal) => {
      guard?.kill('SIGKILL')
      done(signal === null ? `exit status ${code}` : `signal ${signal}`)
    })
  })
  return { pid, process: child, ended, stop: (graceMs) => stop(child, ended, graceMs) }
}

/** The last lines of a child's log, to report why it ended. */
export function lastLines(logFile: string, lines: number): string[] {
  try {
    return readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-lines)
  } catch {
    return []
  }
}

/**
 * Starts a shell that waits for the end of its standard input, which comes when this process ends, in whatever way, and
 * then kills the child. A frozen child would not notice a closed channel itself. The guest image has no shell and needs
 * none: there the machine stops with this process.
 */
function startGuard(pid: number): ChildProcess | undefined {
  if (process.env[UNGUARDED] !== undefined) return undefined
  const script = 'read -r _; kill -KILL "$0" 2>/dev/null'
  const guard = spawn('/bin/sh', ['-c', script, String(pid)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  guard.unref()
  guard.on('error', () => process.kill(pid, 'SIGKILL'))
  return guard
}

async function stop(child: ChildProcess, ended: Promise<string>, graceMs: number): Promise<void> {
  child.kill('SIGTERM')
  const timer = new AbortController()
  const graceOver = delay(graceMs, true, { signal: timer.signal }).catch(() => false)
  if (await Promise.race([graceOver, ended.then(() => false)])) child.kill('SIGKILL')
  timer.abort()
  await ended
}

/**
 * Opens a log for appending. Where that fails, as on a full disk or in a removed directory that cannot be created
 * again, the log lines are lost: a part that died must be restarted all the same.
 */
function openLog(path: string): number {
  try {
    if (!existsSync(dirname(path))) mkdirSync(dirname(path), { mode: 0o700 })
    setAsideLargeLog(path)
    return openSync(path, 'a', 0o600)
  } catch {
    return openSync(devNull, 'w')
  }
}
