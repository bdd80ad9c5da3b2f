import { utf8, type Bytes } from '../../protocol/bytes.ts'

/** A comment that keeps the connection alive; event-stream parsers skip it. Only sent between events. */
export const KEEP_ALIVE: Bytes = utf8(': keep-alive\n\n')
