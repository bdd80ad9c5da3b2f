import { fork, type ChildProcess } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { DATABASE, FRONT, type Processes } from './system.ts'

/** The kernel counts CPU time in ticks of 10 ms (`getconf CLK_TCK`), the same on every Linux that Node runs on. */
const TICK_US = 10_000

/** CPU time that each group has used so far, all threads together, in microseconds (proc(5), `stat`). */
export function cpuTimesUs(processes: Processes): Record<string, number> {
  return Object.fromEntries(
    Object.entries(processes).map(([group, pids]) => [group, sum(pids, cpuTicks) * TICK_US]),
  )
}

function cpuTicks(pid: number): number {
  return ticksOf(readProc(`${pid}/stat`))
}

/**
 * User and system time of a `stat` line, plus that of the children that the process has waited for: so the time of a
 * short-lived child still counts after it has ended. The command name in the line may contain spaces and brackets.
 */
export function ticksOf(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return sum(fields.slice(11, 15), Number)
}

/** CPU time that everything on the machine has used so far, in microseconds (proc(5), `/proc/stat`). */
export function machineCpuUs(): number {
  const [, user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = readProc('stat')
    .slice(0, 512)
    .split('\n', 1)
    .join('')
    .split(/ +/)
    .map(Number)
  return (user + nice + system + irq + softirq + steal) * TICK_US
}

/** CPU time that a process and all its descendants have used so far, in microseconds. */
export function treeCpuUs(pid: number): number {
  return cpuTicks(pid) * TICK_US + sum(childrenOf(pid), treeCpuUs)
}

/** CPU time that the main thread of a process has used so far, in microseconds. */
export function mainThreadCpuUs(pid: number): number {
  return ticksOf(readProc(`${pid}/task/${pid}/stat`)) * TICK_US
}

/** The children of all threads of a process; empty when the process has ended. */
function childrenOf(pid: number): readonly number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readProc(`${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number),
    )
  } catch {
    return []
  }
}

/**
 * Resident memory of processes, in MiB, with shared pages counted proportionally (PSS; proc(5), `smaps_rollup`). Leaves
 * out the database, and the fronts, which run in the benchmark's own process.
 */
export function residentMib({
  [DATABASE]: _shared,
  [FRONT]: _own,
  ...processes
}: Processes): number {
  return sum(Object.values(processes).flat(), (pid) => {
    const line = /^Pss:\s+(\d+) kB$/m.exec(readProc(`${pid}/smaps_rollup`))
    return Number(line?.[1] ?? 0) / 1024
  })
}

/** A single-threaded process and its current children. */
export function withChildren(pid: number): readonly number[] {
  const children = readProc(`${pid}/task/${pid}/children`).split(' ').filter(Boolean)
  return [...children.map(Number), pid]
}

/** The content of a file below /proc; empty when the process has ended. */
function readProc(path: string): string {
  try {
    return readFileSync(`/proc/${path}`, 'utf8')
  } catch {
    return ''
  }
}

function sum<Value>(values: readonly Value[], figure: (value: Value) => number): number {
  return values.reduce((total, value) => total + figure(value), 0)
}

/** Starts a file of this folder in a process of its own, which ends with this one. */
export function startScript(name: string): ChildProcess {
  const path = fileURLToPath(new URL(name, import.meta.url))
  return fork(path, [], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
}

/**
 * The next message of a child.
 * @throws Error when it ends without sending one
 */
export function nextMessage(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const ended = () => reject(new Error('a process of the benchmark ended early'))
    child.once('exit', ended)
    child.once('message', (message) => {
      child.off('exit', ended)
      resolve(message)
    })
  })
}

/** Ends a child and waits for it. */
export async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), 2_000)
  await ended
  clearTimeout(timer)
}

/**
 * Repeats the request until its status is 200.
 * @throws Error when no answer has status 200 within `timeoutMs`; the message contains the last answer
 */
export async function untilServes(ask: () => Promise<Response>, timeoutMs: number): Promise<void> {
  const deadline = performance.now() + timeoutMs
  let last = 'no answer'
  while (performance.now() < deadline) {
    try {
      const answer = await ask()
      const text = await answer.text()
      if (answer.status === 200) return
      last = `${answer.status} ${text.slice(0, 300)}`
    } catch (error) {
      last = String(error)
    }
    await delay(100)
  }
  throw new Error(`it does not serve: ${last}`)
}
