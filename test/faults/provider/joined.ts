import { setTimeout as delay } from 'node:timers/promises'
import type { ProviderCall, Script } from '../../support/fault-provider.ts'
import {
  content,
  DONE,
  errorObject,
  event,
  EVENT_STREAM,
  FIRST,
  ROLE,
  STOP,
  usageFrame,
} from '../answers.ts'
import { PROMPT_ESTIMATE } from '../ask.ts'
import { cut, served, type ProviderCase } from './case.ts'

/** Much shorter than the time for which chunks wait while many streams are relayed. */
const PAUSE_MS = 3

/** The first output, which never waits, and further text that does, in pieces; then at once whatever `misconduct` does. */
function speaking(pieces: readonly string[], misconduct: (call: ProviderCall) => void): Script {
  return async (call) => {
    const [first = '', ...others] = pieces
    call.wire.head(200, EVENT_STREAM)
    call.wire.send(ROLE + content(first))
    for (const piece of others) {
      await delay(PAUSE_MS)
      call.wire.send(content(piece))
    }
    misconduct(call)
  }
}

const WORDS = ['Hello ', 'from ', 'the ', 'first.']

const afterWords = (misconduct: (call: ProviderCall) => void) => speaking(WORDS, misconduct)

/** More than one stream holds back. */
const LONG = Array.from({ length: 80 }, (_, index) => `${index % 10}`.repeat(1024))

/** Ends the body, which may be in the middle of an event. */
const ending =
  (rest: string) =>
  ({ wire }: ProviderCall): void => {
    wire.send(rest)
    wire.end()
  }

const UNFINISHED = cut('unclassified', { text: FIRST })

/** What goes wrong while text of the answer waits to be sent together with what follows: all of it comes before the error. */
export const JOINED_CASES: readonly ProviderCase[] = [
  {
    name: 'nothing wrong, in small pieces',
    script: afterWords(ending(STOP + usageFrame() + DONE)),
    stream: served(),
  },
  {
    name: 'an end without a finish reason, after small pieces',
    script: afterWords(({ wire }) => wire.end()),
    stream: UNFINISHED,
  },
  {
    name: '[DONE] without a finish reason, after small pieces',
    script: afterWords(ending(DONE)),
    stream: UNFINISHED,
  },
  {
    name: 'an end in the middle of an event, after small pieces',
    script: afterWords(ending(content('lost').slice(0, -12))),
    stream: UNFINISHED,
  },
  {
    name: 'a close in the middle of a chunk, after small pieces',
    script: afterWords(({ wire }) => {
      wire.raw('40\r\ndata: {"choices"')
      wire.close()
    }),
    stream: cut('unavailable', { text: FIRST }),
  },
  {
    name: 'an error object after small pieces',
    script: afterWords(ending(event(errorObject()))),
    stream: UNFINISHED,
  },
  {
    name: 'text and malformed JSON in one chunk, after small pieces',
    script: speaking(WORDS.slice(0, -1), ending(content('first.') + event('{"choices":['))),
    stream: UNFINISHED,
  },
  {
    name: 'silence after small pieces',
    script: afterWords(() => {}),
    stream: cut('timeout', { text: FIRST, code: 'upstream_timeout' }),
    timed: true,
  },
  {
    name: 'an end without a finish reason, after 80 KiB in small pieces',
    script: speaking(LONG, ({ wire }) => wire.end()),
    // No more is billed than the route's `max_output_tokens`.
    stream: cut('unclassified', { text: LONG.join(''), counted: `${PROMPT_ESTIMATE}+1000` }),
  },
]
