import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { LOCAL_FILE, readLocalFile, type LocalFile } from '../../src/host/stack/local-file.ts'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'

export interface StackOptions {
  /** A configuration instead of the local one. */
  readonly config?: unknown
  /** Further environment variables. */
  readonly env?: Readonly<Record<string, string>>
  /** The limit on open files that it starts under. */
  readonly openFiles?: number
  /** An existing state directory, which is kept; else a new one, removed in the end. */
  readonly stateDir?: string
}

/** The real stack, started as `npm start` does, on free ports. */
export interface Stack {
  /** `local.json` as it stood when the stack was up. */
  readonly local: LocalFile
  readonly stateDir: string
  /** Everything it printed so far. */
  output(): string
  /** `local.json` as it stands now. */
  localNow(): LocalFile
  /** A request with the customer's key. */
  fetch(path: string, init?: RequestInit): Promise<Response>
  /** Sends it a signal and waits for nothing. */
  signal(signal: NodeJS.Signals): void
  /** The exit status, when it has ended. */
  readonly ended: Promise<number | null>
  /** Ends it and answers the exit status; null when a signal ended it. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

const WITHIN_MS = 90_000
const POLL_MS = 20

export function temporaryDirectory(): string {
  return mkdtempSync(join(tmpdir(), 'cmr-stack-'))
}

/** @throws Error with its output when the stack does not come up */
export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const stateDir = options.stateDir ?? temporaryDirectory()
  const process = runStart({ ...options, stateDir })
  await becomesTrue(() => process.exitCode() !== undefined || process.output().includes(' is up '))
  if (process.exitCode() !== undefined || !existsSync(join(stateDir, LOCAL_FILE))) {
    process.child.kill('SIGKILL')
    throw new Error(`the stack did not come up:\n${process.output()}`)
  }
  const local = readLocalFile(stateDir)
  return {
    local,
    stateDir,
    output: () => process.output(),
    localNow: () => readLocalFile(stateDir),
    fetch: (path, init = {}) => {
      const headers = new Headers(init.headers)
      if (!headers.has('authorization')) headers.set('authorization', `Bearer ${local.api_key}`)
      return fetch(local.base_url + path, { ...init, headers })
    },
    signal: (signal) => void process.child.kill(signal),
    ended: process.ended,
    stop: async (signal = 'SIGTERM') => {
      process.child.kill(signal)
      const status = await process.ended
      if (options.stateDir === undefined) rmSync(stateDir, { recursive: true, force: true })
      return status
    },
  }
}

/** A run of the start command. */
export interface StartRun {
  readonly child: ChildProcess
  output(): string
  /** Undefined while it runs; null when a signal ended it. */
  exitCode(): number | null | undefined
  /** Resolves with the exit status. */
  readonly ended: Promise<number | null>
}

/** Runs the start command and waits for nothing. */
export function runStart(options: StackOptions & { readonly stateDir: string }): StartRun {
  const config = join(options.stateDir, 'given-config.json')
  if (options.config !== undefined) writeFileSync(config, JSON.stringify(options.config))
  const start = [process.execPath, join(PROJECT_DIR, 'src/cli/main.ts'), 'start'] as const
  const limited = ['-c', `ulimit -n ${options.openFiles}; exec "$0" "$@"`, ...start]
  const [file, args] =
    options.openFiles === undefined ? [start[0], start.slice(1)] : ['/bin/sh', limited]
  const child = spawn(file, args, {
    cwd: PROJECT_DIR,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      PORT: '0',
      TLS_PORT: '0',
      STATE_DIR: options.stateDir,
      ...(options.config === undefined ? {} : { ROUTER_CONFIG: config }),
      ...options.env,
    },
  })
  let output = ''
  let exitCode: number | null | undefined
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  }
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', (code) => {
      exitCode = code
      resolve(code)
    })
  })
  return { child, output: () => output, exitCode: () => exitCode, ended }
}

/**
 * Waits for a condition, for less than the time limit of a test.
 * @throws Error with the source text of the condition when it does not hold in time
 */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  if (await becomesTrue(condition)) return
  throw new Error(`after ${WITHIN_MS / 1000} s this does not hold: ${String(condition)}`)
}

/** Waits for a condition as `until` does; false when it does not hold in time, for runs that report what does hold then. */
export async function becomesTrue(condition: () => boolean | Promise<boolean>): Promise<boolean> {
  const deadline = performance.now() + WITHIN_MS
  while (!(await condition())) {
    if (performance.now() > deadline) return false
    await delay(POLL_MS)
  }
  return true
}
