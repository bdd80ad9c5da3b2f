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
  interrupted,
  JSON_TYPE,
  ROLE,
  STOP,
  TEXT,
  usageFrame,
} from '../answers.ts'
import { PROMPT_ESTIMATE } from '../ask.ts'
import { cut, served, UNAVAILABLE, UNCLASSIFIED, type ProviderCase } from './case.ts'

const WHOLE = JSON.stringify(completion())
const ESTIMATED = `${PROMPT_ESTIMATE}+7`

function finishedBy(reason: string | null): object {
  const message = { role: 'assistant', content: FIRST }
  return { ...completion(), choices: [{ index: 0, message, finish_reason: reason }] }
}

/** Answers that end, but not as they should. */
export const END_CASES: readonly ProviderCase[] = [
  {
    name: 'a clean close without a finish reason',
    failures: [5],
    script: continuing('', JSON.stringify(finishedBy(null))),
    stream: cut('unclassified'),
    whole: UNCLASSIFIED,
  },
  {
    name: 'a clean close before any delta',
    failures: [5, 8],
    script: answering(ROLE, ''),
    stream: UNCLASSIFIED,
    whole: UNCLASSIFIED,
  },
  {
    name: '[DONE] without a finish reason',
    failures: [5],
    script: continuing(DONE, '[DONE]'),
    stream: cut('unclassified'),
    whole: UNCLASSIFIED,
  },
  {
    name: 'a missing [DONE]',
    failures: [6],
    script: answering(ROLE + TEXT + STOP + usageFrame(), ''),
    stream: served(),
  },
  {
    name: 'a missing [DONE] on a connection left open',
    failures: [6],
    script: ({ wire }) => {
      wire.head(200, EVENT_STREAM)
      wire.send(ROLE + TEXT + STOP + usageFrame())
    },
    stream: served(),
  },
  {
    name: '[DONE] on a connection left open',
    failures: [6],
    script: ({ wire }) => {
      wire.head(200, EVENT_STREAM)
      wire.send(ROLE + TEXT + STOP + usageFrame() + DONE)
    },
    stream: served(),
  },
  {
    name: 'more after [DONE]',
    script: answering(ROLE + TEXT + STOP + usageFrame() + DONE + content('encore'), ''),
    stream: served(),
  },
  {
    name: 'a finish reason that says error',
    failures: [5],
    script: continuing(event(chunk({}, 'error')), JSON.stringify(finishedBy('error'))),
    stream: cut('unclassified'),
    whole: UNCLASSIFIED,
  },
  {
    name: 'a finish reason that nobody knows',
    script: answering(
      ROLE + TEXT + event(chunk({}, 'end_turn')) + usageFrame() + DONE,
      JSON.stringify(finishedBy('end_turn')),
    ),
    stream: served({ finish: 'end_turn' }),
    whole: served({ finish: 'end_turn' }),
  },
  {
    name: 'a finish reason that says that resources ran out',
    script: continuing(
      event(chunk({}, 'insufficient_system_resource')),
      JSON.stringify(finishedBy('insufficient_system_resource')),
    ),
    stream: cut('unclassified'),
    whole: UNCLASSIFIED,
  },
  {
    name: 'a finish reason and nothing else',
    script: answering(STOP + usageFrame() + DONE, JSON.stringify(completion({ content: '' }))),
    stream: served({ text: '' }),
    whole: served({ text: '' }),
  },
  {
    name: 'a body cut short and ended cleanly',
    failures: [5],
    script: answering('', WHOLE.slice(0, -20)),
    whole: UNCLASSIFIED,
  },
  {
    name: 'a body shorter than declared',
    failures: [5],
    script: interrupted(({ wire }) => wire.close()),
    stream: cut('unavailable'),
    whole: UNAVAILABLE,
  },
  {
    name: 'a body whose end is the end of the connection',
    undeclared: true,
    script: ({ wire, stream }) => {
      const type = stream ? EVENT_STREAM : JSON_TYPE
      wire.raw(
        `HTTP/1.1 200 OK\r\ncontent-type: ${type['content-type']}\r\nconnection: close\r\n\r\n`,
      )
      wire.unframed(stream ? ROLE + TEXT + STOP : WHOLE)
      wire.close()
    },
    stream: served({ counted: ESTIMATED }),
    whole: served(),
  },
]
