import type { Bytes } from '../protocol/bytes.ts'
import { sha256Hex } from '../protocol/digest.ts'
import { MalformedEvidence } from '../protocol/malformed-evidence.ts'

/**
 * SHA-256 (hex) of an answer as its receipt states it: of the whole body, or of a stream's bytes before the event
 * with `service`, which names the receipt and so cannot be part of it. Routers end a stream with that event; anything
 * after it would be unsigned.
 * @throws MalformedEvidence when the stream continues after its end mark, or within the event with `service`
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
  for (const event of text.split(/(?<=\r?\n\r?\n)/)) {
    if (carriesService(event)) {
      if (!LAST_EVENT.test(event)) {
        throw new MalformedEvidence(
          'answer',
          'its last event has more lines than the router writes there',
        )
      }
      if (AFTER_LAST.test(text.slice(start + event.length))) return start
      throw new MalformedEvidence(
        'answer',
        'it goes on after its last event, which no receipt is about',
      )
    }
    start += event.length
  }
  return undefined
}

/**
 * The event with `service` as routers write it. More lines, and carriage returns alone, which end lines and events too
 * (HTML Standard, "Server-sent events"), could hide further events in it.
 */
const LAST_EVENT = /^(?:event: ?[^\r\n]*\r?\n)?data: ?[^\r\n]*\r?\n(?:\r?\n)?$/

/** The end mark of chat completions. */
const AFTER_LAST = /^\s*(?:data: \[DONE\]\s*)?$/

function carriesService(event: string): boolean {
  const data = /^data: ?(.*?)\r?\n/m.exec(event)?.[1]
  if (data?.startsWith('{') !== true) return false
  try {
    const chunk: unknown = JSON.parse(data)
    return typeof chunk === 'object' && chunk !== null && 'service' in chunk
  } catch {
    return false
  }
}
