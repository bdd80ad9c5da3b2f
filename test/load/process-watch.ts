import { readdirSync, readFileSync } from 'node:fs'

/** What the processes of a stack take of the machine, looked at once a second (Linux: from /proc). */

const MIB = 1024 * 1024

export interface Sample {
  /** Seconds since the watch began. */
  readonly at: number
  readonly rssMib: number
  readonly descriptors: number
  /** User and system time since the process began, all threads. */
  readonly cpuSeconds: number
}

export interface ProcessWatch {
  /** Ends it and answers what was seen, by the name of the process. */
  stop(): ReadonlyMap<string, readonly Sample[]>
}

const EVERY_MS = 1_000

/** @param pids asked for at each look, because a part that was started again has another one */
export function watchProcesses(
  pids: () => Readonly<Record<string, number | undefined>>,
): ProcessWatch {
  const samples = new Map<string, Sample[]>()
  const begun = performance.now()
  const look = () => {
    for (const [name, pid] of Object.entries(pids())) {
      const sample =
        pid === undefined ? undefined : sampleOf(pid, (performance.now() - begun) / 1000)
      if (sample) samples.set(name, [...(samples.get(name) ?? []), sample])
    }
  }
  look()
  const timer = setInterval(look, EVERY_MS)
  return {
    stop: () => {
      clearInterval(timer)
      look()
      return samples
    },
  }
}

/** The process that started another one. */
export function parentOf(pid: number): number {
  return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}

function sampleOf(pid: number, at: number): Sample | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const kib = Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1])
    const descriptors = readdirSync(`/proc/${pid}/fd`).length
    const rssMib = Math.round((kib * 1024) / MIB)
    return { at, rssMib, descriptors, cpuSeconds: cpuSecondsOf(pid) }
  } catch {
    // It has just ended; the next look finds its successor.
    return undefined
  }
}

/** Clock ticks a second, in which Linux counts CPU time (USER_HZ). */
const TICKS = 100

/** `utime` and `stime` of proc_pid_stat(5); the name before them may hold spaces. */
function cpuSecondsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS
}

/** The middle value of the memory seen from one time to another, in MiB. */
export function medianMib(samples: readonly Sample[], from: number, to: number): number {
  const values = samples
    .filter(({ at }) => at >= from && at <= to)
    .map(({ rssMib }) => rssMib)
    .toSorted((a, b) => a - b)
  return values[Math.floor(values.length / 2)] ?? 0
}

/** CPU seconds between the first of the samples and the last. */
export function cpuSpent(samples: readonly Sample[]): number {
  return (samples.at(-1)?.cpuSeconds ?? 0) - (samples[0]?.cpuSeconds ?? 0)
}

export function peakOf(samples: readonly Sample[], figure: 'rssMib' | 'descriptors'): number {
  return Math.max(0, ...samples.map((sample) => sample[figure]))
}
