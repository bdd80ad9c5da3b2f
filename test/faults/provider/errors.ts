import { gzipSync } from 'node:zlib'
import type { Script } from '../../support/fault-provider.ts'
import {
  answering,
  chunk,
  completion,
  content,
  continuing,
  DONE,
  errorObject,
  event,
  EVENT_STREAM,
  JSON_TYPE,
  PROVIDER_WORDS,
  ROLE,
  sound,
  status,
  STOP,
  TEXT,
  usageFrame,
} from '../answers.ts'
import {
  cut,
  failed,
  refused,
  served,
  UNAVAILABLE,
  UNCLASSIFIED,
  type ProviderCase,
} from './case.ts'

const HTML = `<html><body><h1>${PROVIDER_WORDS}</h1></body></html>`
const HTML_TYPE = { 'content-type': 'text/html' }
const WHOLE = JSON.stringify(completion())
const STREAM = ROLE + TEXT + STOP + usageFrame() + DONE

/** The operator's own fault: an error of the route like any other. */
const UNAUTHORIZED = failed('unauthorized_upstream', '503 routes_unavailable')
const RATE_LIMITED = failed('rate_limited', '429 upstream_rate_limit, retry after 1')

function by(name: string, script: Script, expected: ProviderCase['stream']): ProviderCase {
  return { name, script, ...(expected && { stream: expected, whole: expected }) }
}

function encoded(encoding: string): Script {
  return ({ wire, stream }) => {
    const type = stream ? EVENT_STREAM : JSON_TYPE
    wire.head(200, { ...type, 'content-encoding': encoding })
    const said = stream ? STREAM : WHOLE
    wire.send(gzipSync(said), said)
    wire.end()
  }
}

/** Would answer correctly at the target of the redirect, if it were followed. */
function redirect(code: number): Script {
  return (call) => {
    if (call.number > 1) return sound(call)
    const host = /^host: *(.*)$/im.exec(call.headers)?.[1] ?? ''
    return status(code, { location: `http://${host}/alpha/chat/completions` })(call)
  }
}

/** Errors, by status and in other clothes. */
export const ERROR_CASES: readonly ProviderCase[] = [
  {
    ...by(
      'an error object as the whole of a 200',
      answering(event(errorObject()) + DONE, JSON.stringify(errorObject())),
      UNCLASSIFIED,
    ),
    failures: [7],
  },
  {
    ...by(
      'an error object after opening frames',
      answering(ROLE + ROLE + event(errorObject()), ''),
      UNCLASSIFIED,
    ),
    failures: [7, 8],
  },
  {
    name: 'an error object in the middle',
    failures: [4, 9],
    script: continuing(event(errorObject())),
    stream: cut('unclassified'),
  },
  by(
    'an error object in one packet with the first delta',
    answering(ROLE + content('Hello ') + event(errorObject()), JSON.stringify(errorObject())),
    UNCLASSIFIED,
  ),
  by(
    'a tool call that never gets a name',
    answering(
      ROLE +
        event(chunk({ tool_calls: [{ index: 0, id: 'c', function: { arguments: '{' } }] })) +
        event(chunk({ tool_calls: [{ index: 0, function: { arguments: '}' } }] })) +
        event(chunk({}, 'tool_calls')) +
        usageFrame() +
        DONE,
      JSON.stringify(completion({ tool_calls: [{ id: 'c', function: { arguments: '{}' } }] })),
    ),
    UNCLASSIFIED,
  ),
  {
    name: 'an event named error in the middle',
    failures: [4],
    script: continuing(`event: error\ndata: ${PROVIDER_WORDS}\n\n`),
    stream: cut('unclassified'),
  },
  by(
    'a rate limit as an error object in a 200',
    answering(event(errorObject('rate_limit_exceeded')), JSON.stringify(errorObject(429))),
    RATE_LIMITED,
  ),
  {
    name: 'a rate limit in the middle',
    script: continuing(event(errorObject('rate_limit_exceeded'))),
    stream: cut('rate_limited'),
  },
  by('500', status(500), UNCLASSIFIED),
  {
    ...by(
      '500 once, then well',
      (call) => (call.number === 1 ? status(500)(call) : sound(call)),
      UNCLASSIFIED,
    ),
    failures: [27],
  },
  by('501', status(501), UNCLASSIFIED),
  by('502', status(502), UNAVAILABLE),
  by('503', status(503), UNAVAILABLE),
  {
    ...by(
      '503 with Retry-After',
      status(503, { 'retry-after': '7' }),
      failed('unavailable', '503 routes_unavailable, retry after 7', { state: 'open' }),
    ),
    failures: [26],
  },
  by('504', status(504), UNAVAILABLE),
  by('529', status(529), UNAVAILABLE),
  by('401', status(401), UNAUTHORIZED),
  by('402', status(402), UNAUTHORIZED),
  by('403', status(403), UNAUTHORIZED),
  by('404', status(404), UNAUTHORIZED),
  by('408', status(408), UNAVAILABLE),
  by('418', status(418), UNCLASSIFIED),
  by('400', status(400), refused('upstream_rejected')),
  by('413', status(413), refused('upstream_rejected')),
  by('422', status(422), refused('upstream_rejected')),
  by(
    '400 context_length_exceeded',
    status(400, {}, JSON.stringify(errorObject('context_length_exceeded'))),
    refused('context_length_exceeded'),
  ),
  by(
    '400 content_policy_violation',
    status(400, {}, JSON.stringify(errorObject('content_policy_violation'))),
    refused('content_policy_violation'),
  ),
  by('an HTML page with 502', status(502, HTML_TYPE, HTML), UNAVAILABLE),
  by('an HTML page with 500', status(500, HTML_TYPE, HTML), UNCLASSIFIED),
  by('an HTML page with 400', status(400, HTML_TYPE, HTML), refused('upstream_rejected')),
  by('an HTML page with 200', status(200, HTML_TYPE, HTML), UNCLASSIFIED),
  {
    ...by(
      'an error body without end',
      async ({ wire }) => {
        wire.head(503)
        while (!wire.over) await wire.sendSlowly(PROVIDER_WORDS.repeat(1_000))
      },
      UNAVAILABLE,
    ),
    undeclared: true,
  },
  {
    ...by('an error body that never comes', ({ wire }) => wire.head(503), UNAVAILABLE),
    undeclared: true,
  },
  {
    ...by(
      '204',
      ({ wire }) => {
        wire.raw('HTTP/1.1 204 No Content\r\n\r\n')
        wire.end()
      },
      UNCLASSIFIED,
    ),
    undeclared: true,
  },
  by('206', status(206, {}, WHOLE), UNCLASSIFIED),
  ...[301, 302, 303, 307, 308].map((code) =>
    by(`a redirect, ${code}`, redirect(code), UNCLASSIFIED),
  ),
  {
    ...by('gzip, although not asked for', encoded('gzip'), served()),
    failures: [25],
    undeclared: true,
  },
  {
    ...by('a coding nobody knows', encoded('x-rot13'), UNCLASSIFIED),
    failures: [25],
    undeclared: true,
  },
  by(
    'the wrong content type',
    ({ wire, stream }) => {
      wire.head(200, { 'content-type': 'application/octet-stream' })
      wire.send(stream ? STREAM : WHOLE)
      wire.end()
    },
    served(),
  ),
  {
    name: 'a whole answer to a request for a stream, and the reverse',
    script: answering(WHOLE, STREAM),
    stream: UNCLASSIFIED,
    whole: UNCLASSIFIED,
  },
  {
    name: 'a stream that ends in HTML',
    script: continuing(`data: ${HTML}\n\n`),
    stream: cut('unclassified'),
  },
  {
    name: 'an error beside a delta',
    script: continuing(
      event({ choices: [], ...errorObject() }) + STOP + DONE,
      JSON.stringify({ ...completion(), ...errorObject() }),
    ),
    stream: cut('unclassified'),
    whole: UNCLASSIFIED,
  },
]
