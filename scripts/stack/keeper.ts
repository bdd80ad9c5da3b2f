import type { Child } from './child.ts'

/** A started child with what it told when it was ready. */
export interface Started<Ready> {
  readonly child: Child
  readonly ready: Ready
}

/** What a keeper tells. */
export interface KeeperEvents<Ready> {
  /** Each time the part is up, the first time included. */
  up(ready: Ready, pid: number): void
  /** It died; it will be started again after `restartMs`. */
  died(why: string, restartMs: number): void
  /** It died too often: the stack has to end. */
  gaveUp(why: string): void
}

/** Keeps one part of the stack running. */
export interface Keeper {
  /** Starts it the first time. @throws when it does not come up */
  start(): Promise<void>
  /** Stops it for good. */
  stop(graceMs: number): Promise<void>
}

const FIRST_RESTART_MS = 3_000
const RESTART_GROWTH = 1.5
const MOST_DEATHS = 5
const DEATHS_WITHIN_MS = 60_000

/**
 * Starts a part and starts it again when it dies: after three seconds the first time, then after half as
 * long again each time; the fifth death within a minute is the last. `start` must reject, leaving no process
 * behind, when the part does not come up.
 */
export function createKeeper<Ready>(
  start: () => Promise<Started<Ready>>,
  now: () => number,
  events: KeeperEvents<Ready>,
): Keeper {
  let current: Child | undefined
  let timer: NodeJS.Timeout | undefined
  let deaths: number[] = []
  let stopped = false

  const startOnce = async () => {
    const { child, ready } = await start()
    current = child
    events.up(ready, child.pid)
    void child.ended.then(died)
  }

  const died = (why: string) => {
    current = undefined
    if (stopped) return
    deaths = [...deaths.filter((at) => at > now() - DEATHS_WITHIN_MS), now()]
    if (deaths.length >= MOST_DEATHS) {
      events.gaveUp(why)
      return
    }
    const restartMs = FIRST_RESTART_MS * RESTART_GROWTH ** (deaths.length - 1)
    events.died(why, restartMs)
    timer = setTimeout(() => void startOnce().catch((error) => died(messageOf(error))), restartMs)
  }

  return {
    start: startOnce,
    stop: async (graceMs) => {
      stopped = true
      clearTimeout(timer)
      await current?.stop(graceMs)
    },
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
