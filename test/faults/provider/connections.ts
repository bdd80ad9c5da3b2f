import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'
import {
  answering,
  completion,
  content,
  EVENT_STREAM,
  interrupted,
  ROLE,
  sound,
  STOP,
  TEXT,
} from '../answers.ts'
import { PROMPT_ESTIMATE } from '../ask.ts'
import { TIMEOUTS } from '../world.ts'
import {
  cut,
  failed,
  OUT_OF_TIME,
  served,
  TIMED_OUT,
  UNAVAILABLE,
  unanswered,
  UNCLASSIFIED,
  type ProviderCase,
} from './case.ts'

/** Counted by the router itself: the prompt, and 21 bytes of text. */
const ESTIMATED = `${PROMPT_ESTIMATE}+7`

/** Connections that fail, and silences. */
export const CONNECTION_CASES: readonly ProviderCase[] = [
  {
    name: 'a refused connection',
    failures: [10],
    stream: unanswered(false),
    whole: unanswered(false),
  },
  {
    name: 'a reset before any byte',
    failures: [27],
    script: ({ wire }) => wire.reset(),
    stream: unanswered(),
    whole: unanswered(),
  },
  {
    name: 'a close before any byte',
    script: ({ wire }) => wire.close(),
    stream: unanswered(),
    whole: unanswered(),
  },
  {
    name: 'a reset before any byte, once',
    failures: [27],
    script: (call) => (call.number === 1 ? call.wire.reset() : sound(call)),
    stream: {
      ...failed('unavailable', ''),
      alone: { ...served().alone, health: 'closed, 1 unavailable', calls: 2 },
    },
    whole: {
      ...failed('unavailable', ''),
      alone: { ...served().alone, health: 'closed, 1 unavailable', calls: 2 },
    },
  },
  {
    name: 'slow headers',
    timed: true,
    failures: [11],
    script: async (call) => {
      await delay(TIMEOUTS.headers_ms + 300)
      await sound(call)
    },
    stream: TIMED_OUT,
    whole: served(),
  },
  {
    name: 'silence instead of headers',
    timed: true,
    failures: [11],
    script: () => {},
    stream: TIMED_OUT,
    whole: OUT_OF_TIME,
  },
  {
    name: 'silence after the headers',
    timed: true,
    failures: [11],
    script: ({ wire, stream }) => wire.head(200, stream ? EVENT_STREAM : {}),
    stream: TIMED_OUT,
    whole: OUT_OF_TIME,
  },
  {
    name: 'silence in the middle',
    timed: true,
    failures: [11],
    script: interrupted(() => {}),
    stream: cut('timeout', { code: 'upstream_timeout' }),
    whole: OUT_OF_TIME,
  },
  {
    name: 'a reset in the middle of an event',
    failures: [5, 9],
    script: interrupted(async ({ wire }) => {
      wire.send(content('never whole').slice(0, 20))
      await delay(100)
      wire.reset()
    }),
    stream: cut('unavailable'),
    whole: UNAVAILABLE,
  },
  {
    name: 'a close in the middle of a chunk',
    failures: [5],
    script: interrupted(async ({ wire }) => {
      wire.raw('ff\r\ndata: {"cho')
      await delay(100)
      wire.close()
    }),
    stream: cut('unavailable'),
    whole: UNAVAILABLE,
  },
  {
    name: 'a reset after the finish reason',
    failures: [3, 6],
    script: async ({ wire }) => {
      wire.head(200, EVENT_STREAM)
      wire.send(ROLE + TEXT + STOP)
      await delay(100)
      wire.reset()
    },
    stream: served({ counted: ESTIMATED }),
  },
  {
    name: 'silence after the finish reason',
    timed: true,
    failures: [3, 6],
    script: ({ wire }) => {
      wire.head(200, EVENT_STREAM)
      wire.send(ROLE + TEXT + STOP)
    },
    stream: served({ counted: ESTIMATED }),
    long: true,
  },
  {
    name: 'an answer that trickles in byte by byte',
    failures: [13, 14],
    script: async ({ wire, stream }) => {
      wire.head(200)
      const whole = JSON.stringify(completion({ content: 'größer 🤖' }))
      const body = stream ? ROLE + content('größer 🤖') + STOP : whole
      for (const [index, byte] of Buffer.from(body).entries()) {
        wire.send(Uint8Array.of(byte))
        if (index % 64 === 0) await nextTurn()
      }
      wire.end()
    },
    stream: served({ text: 'größer 🤖', counted: `${PROMPT_ESTIMATE}+5` }),
    whole: served({ text: 'größer 🤖' }),
  },
  {
    name: 'no status line but noise',
    script: ({ wire }) => {
      wire.raw('SSH-2.0-OpenSSH_9.9\r\n\r\n')
      wire.close()
    },
    stream: unanswered(),
    whole: unanswered(),
    overDaemon: UNCLASSIFIED,
  },
  {
    name: 'headers without end',
    script: async ({ wire }) => {
      wire.raw('HTTP/1.1 200 OK\r\n')
      for (let line = 0; line < 2_000 && !wire.over; line++) {
        wire.raw(`x-${line}: ${'a'.repeat(1_000)}\r\n`)
        if (line % 100 === 0) await delay(1)
      }
    },
    stream: unanswered(),
    whole: unanswered(),
    overDaemon: UNCLASSIFIED,
  },
  {
    name: 'a body that is longer than declared',
    script: ({ wire, stream }) => {
      const body = stream ? ROLE + TEXT + STOP : JSON.stringify(completion())
      wire.head(200, { 'content-length': body.length - 1 })
      wire.send(body)
      wire.close()
    },
    stream: cut('unclassified', { text: 'Hello from the first.' }),
    whole: UNCLASSIFIED,
  },
  {
    name: 'an early answer before the answer (103)',
    script: async (call) => {
      call.wire.raw('HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n')
      await answering(ROLE + TEXT + STOP, JSON.stringify(completion()))(call)
    },
    stream: served({ counted: ESTIMATED }),
    whole: served(),
  },
]
