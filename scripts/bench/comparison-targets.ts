import { PORTKEY_ON_NODE } from './portkey.ts'
import { FLOOR } from './table.ts'
import {
  absolute,
  combine,
  compared,
  cpu,
  firstDelta,
  growth,
  memoryReader,
  OF,
  OVER,
  p50,
  rate,
  type Target,
} from './targets.ts'
import { FIRST_STREAMS, IDLE_AFTER_MS } from './windows.ts'

/** The number of frames per second that the mock sends to 512 streams. */
const SENT = 25_600

/** The targets for a comparison with the floor and the peer in the same run. */
export const COMPARISON_TARGETS: readonly Target[] = [
  compared('CPU per request at 64, of the floor', 'whole-64', cpu, 'router', OF(FLOOR), {
    atMost: 3,
  }),
  compared(
    'CPU per request at 64, pinned, of the floor',
    'whole-64',
    cpu,
    'router-pinned',
    OF(FLOOR),
    {
      atMost: 3.3,
    },
  ),
  compared('requests/s at 64, of the floor', 'whole-64', rate, 'router', OF(FLOOR), {
    atLeast: 0.4,
  }),
  compared(
    'requests/s at 64, of Portkey on Node',
    'whole-64',
    rate,
    'router',
    OF(PORTKEY_ON_NODE),
    {
      atLeast: 1,
    },
  ),
  compared('p50 added over direct at 1, ms', 'whole-1', p50, 'router', OVER('direct'), {
    atMost: 2,
  }),
  compared(
    'p50 added over direct at 1, pinned, ms',
    'whole-1',
    p50,
    'router-pinned',
    OVER('direct'),
    { atMost: 2 },
  ),
  compared(
    'first delta added over the floor, ms',
    'first-delta',
    firstDelta,
    'router',
    OVER(FLOOR),
    {
      atMost: 2,
    },
  ),
  compared(
    'first delta added over the floor, pinned, ms',
    'first-delta',
    firstDelta,
    'router-pinned',
    OVER(FLOOR),
    {
      atMost: 2,
    },
  ),
  absolute('CPU per frame, 64 streams, us', 'streams-64', cpu, 'router', { atMost: 75 }),
  absolute('CPU per frame, 64 streams, pinned, us', 'streams-64', cpu, 'router-pinned', {
    atMost: 90,
  }),
  absolute('CPU per frame, 512 streams, pinned, us', 'streams-512', cpu, 'router-pinned', {
    atMost: 45,
  }),
  absolute(
    'frames/s, 512 streams, pinned, of those sent',
    'streams-512',
    ({ framesPerSecond }) => framesPerSecond / SENT,
    'router-pinned',
    { atLeast: 0.98 },
  ),
  {
    title: 'memory per open stream, of the floor',
    atMost: 2,
    measure: (report) => {
      const read = memoryReader(report, ({ perStreamKib }) => perStreamKib)
      return combine(read('router'), read(FLOOR), (own, floor) => own / floor)
    },
  },
  {
    title: `memory of worker and daemon, idle ${IDLE_AFTER_MS / 1_000} s after start, MiB`,
    atMost: 300,
    measure: (report) => memoryReader(report, ({ idleMib }) => idleMib)('router'),
  },
  {
    title: `the same, idle after ${FIRST_STREAMS.toLocaleString('en')} streams, MiB`,
    measure: (report) => memoryReader(report, ({ servedMib }) => servedMib)('router'),
  },
  growth('prompt of 10 MiB, of 4 prompts of 2.5 MiB', 'prompt of 10 MiB', 'prompt of 2.5 MiB', 4),
  growth('line of 8 MiB, of 4 lines of 2 MiB', 'line of 8 MiB', 'line of 2 MiB', 4),
]
