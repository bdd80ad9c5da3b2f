import type { Bytes } from '../protocol/bytes.ts'
import { sha256Hex } from '../protocol/digest.ts'
import { MalformedEvidence } from '../protocol/malformed-evidence.ts'
import { parseStrictJson } from '../protocol/strict-json.ts'
import { finishedItem, tellsMore } from './last-event.ts'

/**
 * SHA-256 (hex) of an answer as its receipt states it: of the complete body, or of a stream's bytes before the event
 * with `service`, which names the receipt and so cannot be covered by it. Routers end a stream with that event;
 * anything after it would be unsigned.
 * @throws MalformedEvidence when the stream continues after its end mark or within the event with `service`, or when
 *   that event says more of the answer than the signed events
 */
export async function responseDigest(body: Bytes): Promise<string> {
  const end = startOfServiceEvent(body)
  return sha256Hex(end === undefined ? body : body.slice(0, end))
}

/** Each byte becomes one character, so that offsets in the text are offsets in the body. */
const latin1 = new TextDecoder('latin1')

function startOfServiceEvent(body: Bytes): number | undefined {
  const text = latin1.decode(body)
  if (!/^(?:data:|:|event:|id:|retry:|\r?\n)/.test(text)) return undefined
  let start = 0
  const items: unknown[] = []
  for (const event of text.split(/(?<=\r?\n\r?\n)/)) {
    const json = jsonOf(body.subarray(start, start + event.length), event)
    const data = parse(json)
    if (carriesService(data)) {
      const lines = LAST_EVENT.exec(event)
      if (lines === null) {
        throw new MalformedEvidence(
          'answer',
          'its last event has more lines than the router writes there',
        )
      }
      // Strict parsing: where a member is repeated, readers disagree on its value.
      const last = parseStrictJson(json, 'answer', { maxDepth: MAX_DEPTH, halfPairs: 'accept' })
      if (tellsMore({ name: lines.groups?.['name'], data: last }, items)) {
        throw new MalformedEvidence(
          'answer',
          'its last event, which no receipt is about, tells more than the events before it',
        )
      }
      if (AFTER_LAST.test(text.slice(start + event.length))) return start
      throw new MalformedEvidence(
        'answer',
        'it goes on after its last event, which no receipt is about',
      )
    }
    items.push(...finishedItem(data))
    start += event.length
  }
  return undefined
}

/**
 * The event with `service` as routers write it. Additional lines, or lone carriage returns, which also end lines and
 * events (HTML Standard, "Server-sent events"), could hide further events in it.
 */
const LAST_EVENT = /^(?:event: ?(?<name>[^\r\n]*)\r?\n)?data: ?[^\r\n]*\r?\n(?:\r?\n)?$/

/**
 * A request may be nested 512 levels deep, and the last event of `/v1/responses` repeats its tools a few levels deeper.
 */
const MAX_DEPTH = 520

/** The end mark of chat completions. */
const AFTER_LAST = /^\s*(?:data: \[DONE\]\s*)?$/

function carriesService(data: unknown): boolean {
  return typeof data === 'object' && data !== null && 'service' in data
}

/** The JSON object in an event, in UTF-8; empty where it has none. `text` has one character for each of the bytes. */
function jsonOf(event: Bytes, text: string): Bytes {
  const [from, to] = /^data: ?(.*?)\r?\n/dm.exec(text)?.indices?.[1] ?? [0, 0]
  return text[from] === '{' ? event.subarray(from, to) : event.subarray(0, 0)
}

const utf8 = new TextDecoder()

function parse(json: Bytes): unknown {
  if (json.length === 0) return undefined
  try {
    return JSON.parse(utf8.decode(json))
  } catch {
    return undefined
  }
}
