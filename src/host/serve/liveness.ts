/** A process that is checked at a fixed interval. */
export interface Watched {
  readonly name: string
  /** Resolves with a description of its health; rejects when there is no answer. */
  readonly probe: () => Promise<string>
  /** Kills the process; called when there was no answer for too long. */
  readonly kill: () => void
}

export interface LivenessDeps {
  readonly log: (text: string) => void
  readonly everyMs: number
  /** After this many checks in a row without an answer, the process counts as frozen. */
  readonly misses: number
}

const HEALTHY = 'ok'

/**
 * Checks every running process at a fixed interval, logs changes of its health, and kills one that no longer answers: a
 * frozen process keeps its sockets, so nothing else would notice.
 * @returns a function that stops the checks
 */
export function watchLiveness(watched: () => readonly Watched[], deps: LivenessDeps): () => void {
  const missed = new Map<string, number>()
  const health = new Map<string, string>()

  const note = (name: string, now: string) => {
    const before = health.get(name) ?? HEALTHY
    health.set(name, now)
    if (before !== now) deps.log(`  ${name.padEnd(8)} ${now === HEALTHY ? 'healthy again' : now}`)
  }

  const probeOne = async ({ name, probe, kill }: Watched) => {
    try {
      note(name, await probe())
      missed.delete(name)
    } catch {
      const count = (missed.get(name) ?? 0) + 1
      missed.set(name, count)
      note(name, 'gives no sign of life')
      if (count < deps.misses) return
      missed.delete(name)
      deps.log(`  ${name.padEnd(8)} is frozen: killed`)
      kill()
    }
  }

  const round = () => {
    const here = watched()
    // Missed checks of a process that is gone must not count against its successor of the same name.
    for (const name of missed.keys()) {
      if (!here.some((one) => one.name === name)) missed.delete(name)
    }
    return Promise.all(here.map(probeOne))
  }

  const timer = setInterval(() => void round(), deps.everyMs)
  timer.unref()
  return () => clearInterval(timer)
}
