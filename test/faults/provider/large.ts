import type { Script } from '../../support/fault-provider.ts'
import {
  chunk,
  completion,
  DONE,
  EVENT_STREAM,
  JSON_TYPE,
  ROLE,
  STOP,
  usageFrame,
} from '../answers.ts'
import { served, TOO_LONG, UNCLASSIFIED, type ProviderCase } from './case.ts'

const MIB = 1024 * 1024

/** One delta of so many bytes, in pieces that the network can take. */
function longLine(bytes: number): Script {
  return async ({ wire, stream }) => {
    wire.head(200, stream ? EVENT_STREAM : JSON_TYPE)
    const text = 'x'.repeat(MIB)
    const [before = '', after = ''] = JSON.stringify(
      stream ? chunk({ content: '|' }) : completion({ content: '|' }),
    ).split('|')
    wire.send(stream ? `${ROLE}data: ${before}` : before)
    for (let left = bytes; left > 0; left -= MIB) await wire.sendSlowly(text.slice(0, left))
    wire.send(stream ? `${after}\n\n${STOP}${usageFrame()}${DONE}` : after)
    wire.end()
  }
}

/** A sound answer after so many spaces, in chunks, under a declared length of 5 bytes. */
function belyingItsLength(spaces: number): Script {
  return async ({ wire }) => {
    const coding = 'content-length: 5\r\ntransfer-encoding: chunked'
    wire.raw(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n${coding}\r\n\r\n`)
    const space = `${MIB.toString(16)}\r\n${' '.repeat(MIB)}\r\n`
    for (let left = spaces; left > 0 && !wire.over; left -= MIB) await wire.rawSlowly(space)
    const answer = JSON.stringify(completion())
    wire.raw(`${answer.length.toString(16)}\r\n${answer}\r\n0\r\n\r\n`)
    wire.close()
  }
}

/** Answers about as large as are taken, and larger. */
export const LARGE_CASES: readonly ProviderCase[] = [
  {
    name: 'a line of 15 MiB',
    failures: [16],
    script: longLine(15 * MIB),
    stream: served({ text: 'x'.repeat(15 * MIB) }),
    whole: served({ text: 'x'.repeat(15 * MIB) }),
  },
  {
    name: 'a line of 17 MiB',
    failures: [16],
    script: longLine(17 * MIB),
    stream: UNCLASSIFIED,
    whole: TOO_LONG,
  },
  {
    name: 'a body of 17 MiB that declares 5 bytes',
    failures: [16],
    script: belyingItsLength(17 * MIB),
    whole: TOO_LONG,
  },
  {
    name: 'a body of 33 MiB',
    failures: [16],
    script: longLine(33 * MIB),
    whole: TOO_LONG,
  },
]
