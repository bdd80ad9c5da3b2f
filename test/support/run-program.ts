import { format } from 'node:util'
import { vi } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'

/** What a run of the program printed, and its exit status. */
export interface Run {
  readonly code: number
  readonly out: string
  readonly err: string
}

export interface RunOptions {
  readonly cwd?: string
  /** The whole environment; that of the tests where absent. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

let last: Promise<unknown> = Promise.resolve()

/**
 * Runs the program with these words as `src/cli/main.ts` does, but in this process: starting one takes longer than most
 * commands do. Runs wait for each other, because all of them print to the same place. For commands that end by themselves.
 */
export function run(words: readonly string[], options: RunOptions = {}): Promise<Run> {
  const next = last.then(() => runNow(words, options))
  last = next.catch(() => {})
  return next
}

/**
 * What the program prints with these words.
 * @throws Error with `code`, `stdout` and `stderr` when its exit status is not 0
 */
export async function outputOf(words: readonly string[], options?: RunOptions): Promise<string> {
  const { code, out, err } = await run(words, options)
  if (code !== 0) throw Object.assign(new Error(err), { code, stdout: out, stderr: err })
  return out
}

async function runNow(words: readonly string[], { cwd, env }: RunOptions): Promise<Run> {
  const printed = { out: '', err: '' }
  const into =
    (stream: 'out' | 'err') =>
    (text: unknown, ...rest: unknown[]) => {
      printed[stream] += String(text)
      const written = rest.at(-1)
      if (typeof written === 'function') written()
      return true
    }
  const lineInto =
    (stream: 'out' | 'err') =>
    (...values: unknown[]) =>
      void (printed[stream] += `${format(...values)}\n`)
  const spies = [
    vi.spyOn(process.stdout, 'write').mockImplementation(into('out')),
    vi.spyOn(process.stderr, 'write').mockImplementation(into('err')),
    vi.spyOn(console, 'log').mockImplementation(lineInto('out')),
    vi.spyOn(console, 'error').mockImplementation(lineInto('err')),
  ]
  const before = { cwd: process.cwd(), env: { ...process.env }, exitCode: process.exitCode }
  process.exitCode = undefined
  if (cwd !== undefined) process.chdir(cwd)
  if (env !== undefined) replaceEnvironment(env)
  try {
    await runProgram(words)
    return { code: exitStatus(), ...printed }
  } finally {
    for (const spy of spies) spy.mockRestore()
    process.exitCode = before.exitCode
    process.chdir(before.cwd)
    replaceEnvironment(before.env)
  }
}

function exitStatus(): number {
  return Number(process.exitCode ?? 0)
}

function replaceEnvironment(env: Readonly<Record<string, string | undefined>>): void {
  for (const name of Object.keys(process.env)) if (env[name] === undefined) delete process.env[name]
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && process.env[name] !== value) process.env[name] = value
  }
}
