/** A process that is asked over and over whether it still works. */
export interface Watched {
  readonly name: string
  /** Its health in a word, such as a status; rejects when it does not answer at all. */
  readonly ask: () => Promise<string>
  /** It has not answered for too long. */
  readonly kill: () => void
}

export interface LivenessTools {
  readonly tell: (text: string) => void
  readonly everyMs: number
  /** So many questions without an answer, and the process is taken for frozen. */
  readonly misses: number
}

const HEALTHY = 'ok'

/**
 * Asks every process at a steady pace, tells when its health changes, and kills one that has fallen silent: a
 * frozen process holds its sockets, so that nobody else notices. Returns what ends it.
 */
export function watchLiveness(watched: () => readonly Watched[], tools: LivenessTools): () => void {
  const missed = new Map<string, number>()
  const health = new Map<string, string>()

  const note = (name: string, now: string) => {
    const before = health.get(name) ?? HEALTHY
    health.set(name, now)
    if (before !== now) tools.tell(`  ${name.padEnd(8)} ${now === HEALTHY ? 'healthy again' : now}`)
  }

  const askOne = async ({ name, ask, kill }: Watched) => {
    try {
      note(name, await ask())
      missed.delete(name)
    } catch {
      const count = (missed.get(name) ?? 0) + 1
      missed.set(name, count)
      note(name, 'gives no sign of life')
      if (count < tools.misses) return
      missed.delete(name)
      tools.tell(`  ${name.padEnd(8)} is frozen: killed`)
      kill()
    }
  }

  const timer = setInterval(() => void Promise.all(watched().map(askOne)), tools.everyMs)
  timer.unref()
  return () => clearInterval(timer)
}
