import { setTimeout as delay } from 'node:timers/promises'
import { utf8 } from '../../../src/protocol/bytes.ts'
import {
  answering,
  chunk,
  completion,
  content,
  continuing,
  DONE,
  event,
  EVENT_STREAM,
  FIRST,
  ROLE,
  sound,
  STOP,
  TEXT,
  usageFrame,
} from '../answers.ts'
import { PROMPT_ESTIMATE } from '../ask.ts'
import { cut, overdue, served, TIMED_OUT, UNCLASSIFIED, type ProviderCase } from './case.ts'

const STREAM = ROLE + TEXT + STOP + usageFrame() + DONE
const WHOLE = JSON.stringify(completion())

/** A byte that no UTF-8 text has, in the middle of a sound one. */
function spoiled(text: string, at: string): Uint8Array {
  const bytes = utf8(text)
  bytes[text.indexOf(at)] = 0xff
  return bytes
}

/** The same member and line ends in other dress. */
export const FRAMING_CASES: readonly ProviderCase[] = [
  {
    name: 'CRLF',
    failures: [15],
    script: answering(STREAM.replaceAll('\n', '\r\n'), `\r\n${WHOLE}\r\n`),
    stream: served(),
    whole: served(),
  },
  {
    name: 'lone CR',
    failures: [15],
    script: answering(STREAM.replaceAll('\n', '\r'), WHOLE),
    stream: served(),
  },
  {
    name: 'multi-line data',
    failures: [15],
    script: answering(
      STREAM.replaceAll(',"choices"', ',\ndata: "choices"'),
      JSON.stringify(completion(), null, 2),
    ),
    stream: served(),
    whole: served(),
  },
  {
    name: 'data without a space',
    failures: [15],
    script: answering(STREAM.replaceAll('data: ', 'data:'), WHOLE),
    stream: served(),
  },
  {
    name: 'a byte order mark',
    failures: [15],
    script: answering(`\uFEFF${STREAM}`, `\uFEFF${WHOLE}`),
    stream: served(),
    whole: served(),
  },
  {
    name: 'fields and comments of no meaning',
    failures: [17],
    script: answering(`: hello\nid: 7\nretry: 5\nfoo: bar\nevent: message\n${STREAM}:\n\n`, WHOLE),
    stream: served(),
  },
  {
    name: 'comments and empty events between deltas',
    failures: [17],
    script: answering(STREAM.replaceAll('\n\n', '\n\n: ping\n\ndata:\n\n'), `\n\n${WHOLE}`),
    stream: served(),
    whole: served(),
  },
  {
    name: 'malformed JSON at the beginning',
    failures: [18],
    script: answering(`data: {"choices": [\n\n${STREAM}`, '{"choices": ['),
    stream: UNCLASSIFIED,
    whole: UNCLASSIFIED,
  },
  {
    name: 'malformed JSON in the middle',
    failures: [18],
    script: continuing(`data: {"choices": [\n\n${STOP}${DONE}`),
    stream: cut('unclassified'),
  },
  {
    name: 'JSON that is no object',
    failures: [18],
    script: answering(`data: 42\n\n${STREAM}`, '[]'),
    stream: UNCLASSIFIED,
    whole: UNCLASSIFIED,
  },
  {
    name: 'invalid UTF-8',
    failures: [14],
    script: continuing(
      spoiled(content('|') + STOP, '|'),
      spoiled(JSON.stringify(completion({ content: '|' })), '|'),
    ),
    stream: cut('unclassified'),
    whole: UNCLASSIFIED,
  },
  {
    name: 'an event that never ends',
    failures: [13],
    script: continuing(STOP.trimEnd()),
    stream: cut('unclassified'),
  },
  {
    name: 'comments without end instead of a delta',
    timed: true,
    failures: [17],
    script: async ({ wire }) => {
      wire.head(200, EVENT_STREAM)
      while (!wire.over) {
        wire.send(': still here\n\n')
        await delay(100)
      }
    },
    stream: TIMED_OUT,
  },
  {
    name: 'a flood of comments instead of a delta',
    failures: [17],
    script: async ({ wire }) => {
      wire.head(200, EVENT_STREAM)
      while (!wire.over) await wire.sendSlowly(`: ${'x'.repeat(8_000)}\n\n`)
    },
    stream: UNCLASSIFIED,
  },
  {
    name: 'comments without end after a delta',
    timed: true,
    failures: [17],
    script: async ({ wire }) => {
      wire.head(200, EVENT_STREAM)
      wire.send(ROLE + content('Hello '))
      while (!wire.over) {
        wire.send(': still here\n\n')
        await delay(100)
      }
    },
    stream: overdue(),
    long: true,
  },
  {
    name: 'opening frames without end',
    failures: [8],
    script: answering(ROLE.repeat(65) + TEXT + STOP, WHOLE),
    stream: UNCLASSIFIED,
  },
  {
    name: 'a slow first token, in time',
    failures: [11],
    script: async (call) => {
      await delay(600)
      await sound(call)
    },
    stream: served(),
    whole: served(),
  },
  {
    name: 'two answers in one body',
    script: answering(
      `${ROLE}${TEXT}${STOP}${event(chunk({ content: FIRST }))}${DONE}`,
      WHOLE + WHOLE,
    ),
    stream: served({ counted: `${PROMPT_ESTIMATE}+14` }),
    whole: UNCLASSIFIED,
  },
]
