import type { Child } from './child.ts'
import { messageOfThrown } from '../../protocol/thrown-message.ts'

/** A started child, and the message it sent when it was ready. */
export interface Started<Ready> {
  readonly child: Child
  readonly ready: Ready
}

/** The events of a restarter. */
export interface RestarterEvents<Ready> {
  /** Called each time the part is up, also the first time. */
  up(ready: Ready, pid: number): void
  /** Called when the part died; it will be started again after `restartMs`. */
  died(why: string, restartMs: number): void
  /** Called when the part died `times` times within a minute, which is too often; the stack must stop. */
  gaveUp(why: string, times: number): void
}

/** Keeps one part of the stack running. */
export interface ProcessRestarter {
  /**
   * Starts the part for the first time.
   * @throws Error when the process does not become ready
   */
  start(): Promise<void>
  /**
   * Stops the running process without counting it as a crash, and starts its successor: at once, or, where the two must
   * never run together, when the old one has ended. A start in progress is awaited first, because the process may have
   * read settings that are now obsolete. A process that waits for its restart, or that dies in the meantime, is not
   * replaced.
   * @param prepare called before the process is asked to end
   */
  replace(graceMs: number, together: boolean, prepare: () => Promise<void>): Promise<void>
  /** Whether the process is up, and has neither ended nor been asked to end. */
  isUp(): boolean
  /** Kills a process that no longer works; it is restarted. */
  kill(): void
  /** Stops the part permanently. */
  stop(graceMs: number): Promise<void>
}

/** When a process that ended is restarted, and when restarting is abandoned. */
export interface RestartPolicy {
  readonly firstMs: number
  /** Factor by which each further delay grows. */
  readonly growth: number
  readonly maxDelayMs: number
  /** Number of crashes within a minute after which it gives up; undefined: never. */
  readonly maxCrashes: number | undefined
}

/** For a local stack: it gives up after five crashes, because its user can read the reason in the terminal. */
export const LOCAL_POLICY: RestartPolicy = {
  firstMs: 3_000,
  growth: 1.5,
  maxDelayMs: 60_000,
  maxCrashes: 5,
}

const CRASH_WINDOW_MS = 60_000

/**
 * Keeps a process running: restarts it when it ends, with a longer delay after each further crash within a minute.
 * `start` must reject, leaving no process behind, when the process does not become ready.
 */
export function createProcessRestarter<Ready>(
  start: () => Promise<Started<Ready>>,
  now: () => number,
  events: RestarterEvents<Ready>,
  policy: RestartPolicy = LOCAL_POLICY,
): ProcessRestarter {
  let current: Child | undefined
  /** The start in progress, or the last one. Never rejects. */
  let starting: Promise<unknown> = Promise.resolve()
  let timer: NodeJS.Timeout | undefined
  let crashes: number[] = []
  let stopped = false
  const retiring = new Set<Promise<void>>()

  const startOnce = () => {
    const begun = startNow()
    starting = begun.catch(() => {})
    return begun
  }

  const startNow = async () => {
    const { child, ready } = await start()
    current = child
    if (stopped) await child.stop(0)
    else events.up(ready, child.pid)
    void child.ended.then((why) => (current === child ? died(why) : undefined))
  }

  const died = (why: string) => {
    current = undefined
    if (stopped) return
    crashes = [...recentOf(crashes, now()), now()]
    if (policy.maxCrashes !== undefined && crashes.length >= policy.maxCrashes) {
      events.gaveUp(why, crashes.length)
      return
    }
    const restartMs = delayAfter(crashes.length, policy)
    events.died(why, restartMs)
    timer = setTimeout(() => void restart(), restartMs)
  }

  const restart = () => startOnce().catch((error: unknown) => died(messageOfThrown(error)))

  return {
    start: startOnce,
    replace: async (graceMs, together, prepare) => {
      await starting
      const old = current
      if (old !== undefined) await prepare()
      if (old === undefined || current !== old || stopped) return
      current = undefined
      const gone = old.stop(graceMs)
      retiring.add(gone)
      void gone.finally(() => retiring.delete(gone))
      if (!together) await gone
      if (!stopped) await restart()
    },
    isUp: () => current !== undefined,
    kill: () => void current?.process.kill('SIGKILL'),
    stop: async (graceMs) => {
      stopped = true
      clearTimeout(timer)
      await Promise.all([current?.stop(graceMs), ...retiring])
    },
  }
}

/** How long a process stays down after its latest crash, ms. */
function delayAfter(crashes: number, { firstMs, growth, maxDelayMs }: RestartPolicy): number {
  return Math.min(firstMs * growth ** (crashes - 1), maxDelayMs)
}

/** The crashes within the window. Times in the future were recorded before the clock was set back; they are dropped. */
function recentOf(crashes: readonly number[], now: number): number[] {
  return crashes.filter((at) => at <= now && at > now - CRASH_WINDOW_MS)
}
