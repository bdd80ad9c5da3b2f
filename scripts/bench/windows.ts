import { BURST, LINES, PACED, PACED_SHORT, SLOW, WHOLE } from './behaviours.ts'
import type { WindowPlan } from './measure.ts'

/** The extent of a run. */
export interface Extent {
  readonly rounds: number
  /** Factor for the length of every window. */
  readonly stretch: number
  readonly kinds: readonly WindowKind[]
}

export type WindowKind = keyof typeof WINDOWS

const whole = { behaviour: WHOLE, stream: false, once: false, warmMs: 400, windowMs: 1_600 }
const paced = { stream: true, once: true }
const short = { behaviour: PACED_SHORT, warmMs: 1_400, windowMs: 2_000 }

/** The windows of one system in one round. */
export const WINDOWS = {
  'whole-1': { ...whole, connections: 1 },
  'whole-16': { ...whole, connections: 16 },
  'whole-64': { ...whole, connections: 64, warmMs: 1_000, windowMs: 4_000 },
  /** For the ledger driven alone: one connection for each worker of a host with 16 cores. */
  'ledger-16': { ...whole, connections: 16, warmMs: 1_500, windowMs: 4_000 },
  'first-delta': { ...whole, behaviour: BURST, stream: true, connections: 1 },
  'streams-64': { ...paced, ...short, connections: 64 },
  'streams-128': { ...paced, ...short, connections: 128 },
  'streams-256': { ...paced, ...short, connections: 256, warmMs: 1_600 },
  'streams-512': { ...paced, behaviour: PACED, connections: 512, warmMs: 3_000, windowMs: 3_000 },
} as const satisfies Record<string, WindowPlan>

/** The kinds with whole answers. */
export const WHOLE_KINDS: readonly WindowKind[] = ['whole-1', 'whole-16', 'whole-64']

/** The kind in which the ledger is driven alone. */
export const LEDGER_KIND = 'ledger-16' satisfies WindowKind

/** The kinds with paced streams, by their number. */
export const STREAM_KINDS = {
  64: 'streams-64',
  128: 'streams-128',
  256: 'streams-256',
  512: 'streams-512',
} as const satisfies Record<number, WindowKind>

/** The kinds of windows for most systems; the other numbers of streams only show where a system saturates. */
export const COMMON_KINDS: readonly WindowKind[] = [
  ...WHOLE_KINDS,
  'first-delta',
  'streams-64',
  'streams-512',
]

export const FULL: Extent = {
  rounds: 3,
  stretch: 1,
  kinds: [...WHOLE_KINDS, 'first-delta', ...Object.values(STREAM_KINDS)],
}

/** A short run that shows regressions, about a minute. */
export const QUICK: Extent = {
  rounds: 1,
  stretch: 0.6,
  kinds: [...WHOLE_KINDS, 'first-delta', 'streams-64'],
}

/** A window of a run; the length for streams is fixed, because it matches their number of frames. */
export function windowPlan(kind: WindowKind, { stretch }: Extent): WindowPlan {
  const plan = WINDOWS[kind]
  return plan.once ? plan : { ...plan, windowMs: plan.windowMs * stretch }
}

const WARM_UP_WHOLE = { ...whole, connections: 64, warmMs: 0, windowMs: 10_000 }

/** The warm-up load of a system, by the kinds of its windows; not counted. */
const WARM_UPS: readonly { readonly of: readonly WindowKind[]; readonly plan: WindowPlan }[] = [
  { of: WHOLE_KINDS, plan: WARM_UP_WHOLE },
  {
    of: ['first-delta'],
    plan: { ...whole, behaviour: BURST, stream: true, connections: 16, warmMs: 0, windowMs: 2_000 },
  },
  { of: Object.values(STREAM_KINDS), plan: WINDOWS['streams-64'] },
  { of: [LEDGER_KIND], plan: { ...WARM_UP_WHOLE, connections: 16 } },
]

/** The warm-up of a system; the same for all systems with the same kinds of windows. */
export function warmUpFor(kinds: readonly WindowKind[]): readonly WindowPlan[] {
  return WARM_UPS.filter(({ of }) => of.some((kind) => kinds.includes(kind))).map(
    ({ plan }) => plan,
  )
}

/** The warm-up of another endpoint of a system that is already warm; not counted. */
export const WARM_UP_ENDPOINT: readonly WindowPlan[] = [{ ...WARM_UP_WHOLE, windowMs: 4_000 }]

/** When a system's idle memory is measured, ms after its start: late enough for its start to be over. */
export const IDLE_AFTER_MS = 5_000

/**
 * The number of streams that each system serves one after another before streams are opened to measure their memory. By
 * then one-time allocations are done and V8's heap has reached its steady size, which would otherwise count as memory
 * of the open streams.
 */
export const FIRST_STREAMS = 1_000

/** A window with some of the first streams; repeated until there were `FIRST_STREAMS`. */
export const FIRST_TOUCH: WindowPlan = {
  ...whole,
  behaviour: BURST,
  stream: true,
  connections: 1,
  warmMs: 0,
  windowMs: 250,
}

/** How often the floor and the router are started to measure their memory. */
export const MEMORY_STARTS = 5

/** Streams that are only held open, to measure their memory. */
export const OPEN_STREAMS = 512
export const OPEN: WindowPlan = {
  ...paced,
  behaviour: SLOW,
  connections: OPEN_STREAMS,
  warmMs: 2_000,
  windowMs: 1_000,
}

const MIB = 1024 * 1024

/** Prompts and lines, each in two sizes; the larger prompt is the largest that fits in a body of 10 MiB. */
export const SIZES: readonly { readonly name: string; readonly plan: WindowPlan }[] = [
  ...[2.5, 10].map((mib) => ({
    name: `prompt of ${mib} MiB`,
    plan: large(WHOLE, false, 'x'.repeat(mib * MIB - 1_024)),
  })),
  ...LINES.map(({ mib, behaviour }) => ({
    name: `line of ${mib} MiB`,
    plan: large(behaviour, true, 'A long line, please.'),
  })),
]

function large(behaviour: string, stream: boolean, content: string): WindowPlan {
  return { behaviour, stream, content, once: false, connections: 1, warmMs: 200, windowMs: 800 }
}
