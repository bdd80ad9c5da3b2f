import { expect, it } from 'vitest'
import { ChunkJoiner } from '../../../src/enclave/egress/chunk-joiner.ts'

/** The longest window, and the interval of its timer at most. */
const PATIENCE_MS = 250 + 40

const OUTPUT = 'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'

/** Marsaglia's xorshift: the same numbers for the same seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

interface Traced {
  readonly push: (chunk: Buffer) => void
  readonly end: () => void
  readonly leave: () => void
  pushed: string
  sent: string
}

/** A joiner with a clock and a timer of its own, and streams that keep what was pushed and sent. */
function world() {
  let now = 1_000_000
  const timers = new Set<{ readonly ms: number; dueAt: number; readonly work: () => void }>()
  const joiner = new ChunkJoiner({
    now: () => now,
    chunksPerSecond: 100,
    every: (ms, work) => {
      const timer = { ms, dueAt: now + ms, work }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
  })
  return {
    open: (): Traced => {
      const traced = { pushed: '', sent: '' }
      const joined = joiner.join((bytes) => (traced.sent += bytes.toString()))
      return Object.assign(traced, joined)
    },
    /** Timers count from when they were set, whatever becomes of the clock that is read. */
    pass: (ms: number, clock = ms) => {
      now += clock
      for (const timer of timers) {
        timer.dueAt -= ms - clock
        if (timer.dueAt > now) continue
        timer.dueAt = now + timer.ms
        timer.work()
      }
    },
    get timers() {
      return timers.size
    },
  }
}

it.each(Array.from({ length: 200 }, (_, index) => index + 1))(
  'whatever happens, every stream has all its bytes, in order, after the longest window (seed %i)',
  (seed) => {
    const random = randomOf(seed)
    const host = world()
    let streams: Traced[] = []
    const ended: Traced[] = []
    for (let step = 0; step < 300; step += 1) {
      const stream = streams[random(Math.max(1, streams.length))]
      const what = random(20)
      if (what < 3 || stream === undefined) {
        const opened = host.open()
        opened.push(Buffer.from(OUTPUT))
        opened.pushed += OUTPUT
        streams.push(opened)
      } else if (what < 14) {
        const chunk = random(40) === 0 ? 'x'.repeat(70_000) : `${step};`
        stream.push(Buffer.from(chunk))
        stream.pushed += chunk
      } else if (what < 15) {
        stream.end()
        // Nothing may follow its end.
        stream.pushed += stream.sent === stream.pushed ? '' : ' was held back at the end'
        ended.push(stream)
        streams = streams.filter((other) => other !== stream)
      } else if (what < 16) {
        stream.leave()
        streams = streams.filter((other) => other !== stream)
      } else if (what < 17) {
        // The host sets the clock back or forward.
        host.pass(1, random(2) === 0 ? -random(5_000) : random(5_000))
      } else host.pass(1 + random(30))
    }
    for (let passed = 0; passed < PATIENCE_MS; passed += 5) host.pass(5)
    expect([...ended, ...streams].filter(({ sent, pushed }) => sent !== pushed)).toEqual([])
    expect(host.timers).toBe(0)
  },
)
