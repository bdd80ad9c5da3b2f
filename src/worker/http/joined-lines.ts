/** How long a line may wait for others, ms. */
const JOIN_MS = 10

/** More lines are not kept waiting. */
const MAX_LINES = 256

export interface JoinDeps {
  /** Ms. */
  readonly now: () => number
  readonly pause: (ms: number) => Promise<void>
  /** Keeps the current request alive until this work has ended, even after its own answer is sent. */
  readonly keepAlive: (work: Promise<unknown>) => void
}

/**
 * Writes lines that come within a moment of each other in one piece, because each call of the console costs three times
 * as much as making the line. For consoles that are a file: elsewhere each piece may count as one entry.
 */
export function joinedLines(
  write: (text: string) => void,
  { now, pause, keepAlive }: JoinDeps,
): (line: string) => void {
  let lines: string[] = []
  let since = 0
  const flush = () => {
    if (lines.length > 0) write(lines.join('\n'))
    lines = []
  }
  return (line) => {
    lines.push(line)
    if (lines.length === 1) {
      since = now()
      keepAlive(pause(JOIN_MS).then(flush))
      return
    }
    // The runtime may have ended the request that was to write them.
    const late = Math.abs(now() - since) > 2 * JOIN_MS
    if (late || lines.length >= MAX_LINES) flush()
  }
}
