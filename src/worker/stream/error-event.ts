import { utf8, type Bytes } from '../../protocol/bytes.ts'

/** A comment that keeps the connection alive; event-stream parsers skip it. Only sent between events. */
export const KEEP_ALIVE: Bytes = utf8(': keep-alive\n\n')

/** The event that ends a broken stream. No `[DONE]` follows it, so that no client takes the answer for whole. */
export function errorEvent(body: object): Bytes {
  return utf8(`data: ${JSON.stringify(body)}\n\n`)
}
