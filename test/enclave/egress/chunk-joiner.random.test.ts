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
  /** What its source has while it rests. */
  readonly unread: string[]
  isRead: boolean
  pushed: string
  sent: string
}

/** A joiner with a clock and a timer of its own, and streams that rest, and keep what was pushed and sent. */
function world() {
  let now = 1_000_000
  const opened: Traced[] = []
  let soon: (() => void)[] = []
  const timers = new Set<{ readonly ms: number; dueAt: number; readonly work: () => void }>()
  const joiner = new ChunkJoiner({
    now: () => now,
    chunksPerSecond: 100,
    every: (ms, work) => {
      const timer = { ms, dueAt: now + ms, work }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
    soon: (work) => soon.push(work),
  })
  const turn = () => {
    for (const { isRead, unread, push } of opened) {
      if (isRead) for (const chunk of unread.splice(0)) push(Buffer.from(chunk))
    }
    const works = soon
    soon = []
    for (const work of works) work()
  }
  return {
    open: (): Traced => {
      const traced = { pushed: '', sent: '', isRead: true, unread: [] }
      const source = {
        pause: () => (traced.isRead = false),
        resume: () => (traced.isRead = true),
      }
      const send = (bytes: Buffer) => (traced.sent += bytes.toString())
      const stream = Object.assign(traced, joiner.join(send, undefined, source))
      opened.push(stream)
      return stream
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
      turn()
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
        // What was read together with the chunk before it comes although its stream rests.
        const comesYet = stream.isRead || (stream.unread.length === 0 && random(4) === 0)
        if (comesYet) stream.push(Buffer.from(chunk))
        else stream.unread.push(chunk)
        stream.pushed += chunk
      } else if (what < 15) {
        if (stream.unread.length > 0) continue
        stream.end()
        // Nothing may follow its end.
        stream.pushed += stream.sent === stream.pushed ? '' : ' was held back at the end'
        ended.push(stream)
        streams = streams.filter((other) => other !== stream)
      } else if (what < 16) {
        stream.leave()
        stream.unread.length = 0
        streams = streams.filter((other) => other !== stream)
      } else if (what < 17) {
        // The host sets the clock back or forward.
        host.pass(1, random(2) === 0 ? -random(5_000) : random(5_000))
      } else host.pass(1 + random(30))
    }
    const wait = () => {
      for (let passed = 0; passed < PATIENCE_MS; passed += 5) host.pass(5)
    }
    wait()
    expect([...ended, ...streams].filter(({ sent, pushed }) => sent !== pushed)).toEqual([])
    // What left last together is rested from.
    wait()
    expect(host.timers).toBe(0)
  },
)
