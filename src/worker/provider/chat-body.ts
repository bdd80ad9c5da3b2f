import type { Bytes } from '../../protocol/bytes.ts'
import type { Effort } from '../../protocol/effort.ts'
import { ByteSink } from '../http/byte-sink.ts'
import { isNull, JsonCursor, type Range } from '../json/scan.ts'
import { PASSED_MEMBERS, type ChatRequest } from './chat-request.ts'
import type { Route } from './route.ts'

/** Bytes the router adds to most bodies: member names, the model, a salt. */
const ADDED_BYTES = 512

/** Members the router decides itself; an effort patch cannot override them. */
const OWN_MEMBERS: ReadonlySet<string> = new Set(['model', 'messages', 'stream', 'stream_options'])

/** Members that an OCR route is always sent (see docs/api.md). */
const OCR_MEMBERS = { temperature: 0, skip_special_tokens: false }

type Writer = (sink: ByteSink) => void

/**
 * The request body for one route, assembled from the client's bytes: every forwarded value stays as it was written,
 * including numbers beyond 2^53, `0.50`, key order and escapes. Members of this service, and others that the route's
 * `forward` does not name, are left out. No member appears twice; the effort's patch, the OCR members and the salt
 * override the caller's.
 */
export function buildChatBody(
  request: ChatRequest,
  route: Route,
  effort: Effort | undefined,
  cacheSalt: string | undefined,
): Bytes {
  const { config } = route
  const members: Members = new Map()
  members.set('model', (sink) => sink.text(JSON.stringify(config.upstream_model)))
  members.set('messages', (sink) => writeMessages(sink, request, config.reasoning?.history_field))
  addForwarded(members, request, route)
  if (effort !== undefined) addJson(members, effortPatch(route, effort))
  if (config.ocr) addJson(members, OCR_MEMBERS)
  if (cacheSalt !== undefined) addJson(members, saltMember(route, cacheSalt))
  addStreamMembers(members, request)
  const sink = new ByteSink(request.bytes.length + ADDED_BYTES)
  let separator = '{'
  for (const [name, write] of members) {
    sink.text(`${separator}${JSON.stringify(name)}:`)
    write(sink)
    separator = ','
  }
  sink.text('}')
  return sink.finish()
}

/** Writers by member name, in the order of the body; a later member of the same name overrides an earlier one. */
type Members = Map<string, Writer>

function addForwarded(
  sent: Members,
  { bytes, members, otherMembers }: ChatRequest,
  route: Route,
): void {
  for (const name of PASSED_MEMBERS) addCopy(sent, name, bytes, members.get(name))
  for (const name of ['temperature', 'max_tokens', 'max_completion_tokens']) {
    const range = members.get(name)
    if (range === undefined || isNull(bytes, range)) continue
    addCopy(sent, name === 'max_completion_tokens' ? 'max_tokens' : name, bytes, range)
  }
  for (const name of route.config.forward) addCopy(sent, name, bytes, otherMembers.get(name))
}

function addCopy(sent: Members, name: string, bytes: Bytes, range: Range | undefined): void {
  if (range !== undefined) sent.set(name, (sink) => sink.copy(bytes, range.start, range.end))
}

function effortPatch(route: Route, effort: Effort): Readonly<Record<string, unknown>> {
  const patch = route.config.reasoning?.efforts[effort]
  return Object.fromEntries(Object.entries(patch ?? {}).filter(([name]) => !OWN_MEMBERS.has(name)))
}

function saltMember(route: Route, salt: string): Readonly<Record<string, unknown>> {
  const field = route.config.cache_salt_field
  return field === undefined ? {} : { [field]: salt }
}

function addJson(sent: Members, values: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(values)) {
    sent.set(name, (sink) => sink.text(JSON.stringify(value)))
  }
}

/** Streams always request usage, whatever the caller's options; otherwise the options are forwarded unchanged. */
function addStreamMembers(sent: Members, { bytes, members, stream }: ChatRequest): void {
  const range = members.get('stream_options')
  const options = range === undefined || isNull(bytes, range) ? undefined : range
  if (!stream) return addCopy(sent, 'stream_options', bytes, options)
  sent.set('stream', (sink) => sink.text('true'))
  sent.set('stream_options', (sink) => writeStreamOptions(sink, bytes, options))
}

/**
 * Options that are not forwarded. Usage is always requested; and with continuous usage, vLLM reports in each chunk only the
 * counts of that chunk's choice, so that of several choices only one would be counted until the last chunk.
 */
const OWN_OPTIONS: ReadonlySet<string> = new Set(['include_usage', 'continuous_usage_stats'])

function writeStreamOptions(sink: ByteSink, bytes: Bytes, options: Range | undefined): void {
  sink.text('{')
  if (options !== undefined) {
    const cursor = new JsonCursor(bytes, options.start)
    cursor.object((name, start) => {
      const { end } = cursor.skip()
      if (OWN_OPTIONS.has(name)) return
      sink.copy(bytes, start, end)
      sink.text(',')
    })
  }
  sink.text('"include_usage":true}')
}

/** The messages unchanged, except those that carry earlier reasoning. */
function writeMessages(
  sink: ByteSink,
  request: ChatRequest,
  historyField: string | undefined,
): void {
  const { bytes, messages } = request
  let written = messages.start
  for (const message of messages.withReasoning) {
    sink.copy(bytes, written, message.start)
    writeMessage(sink, bytes, message, historyField)
    written = message.end
  }
  sink.copy(bytes, written, messages.end)
}

/**
 * Writes an assistant message with its earlier reasoning under the one name that the route accepts, or without it. Where a
 * client sends both names, the last text is kept. The members are read twice instead of listed, because a message may have
 * hundreds of thousands of them.
 */
function writeMessage(
  sink: ByteSink,
  bytes: Bytes,
  message: Range,
  historyField: string | undefined,
): void {
  const kept = historyField === undefined ? undefined : lastReasoning(bytes, message)
  const cursor = new JsonCursor(bytes, message.start)
  let separator = '{'
  cursor.object((name, start) => {
    const value = cursor.skip()
    const isKept = value.start === kept
    const isReplaced = isReasoning(name) || (kept !== undefined && name === historyField)
    if (isReplaced && !isKept) return
    sink.text(separator)
    separator = ','
    if (isKept) sink.text(`${JSON.stringify(historyField)}:`)
    sink.copy(bytes, isKept ? value.start : start, value.end)
  })
  sink.text(separator === '{' ? '{}' : '}')
}

/** The offset of the last earlier reasoning in a message; undefined where it has none. */
function lastReasoning(bytes: Bytes, message: Range): number | undefined {
  let last: number | undefined
  const cursor = new JsonCursor(bytes, message.start)
  cursor.object((name) => {
    if (!isReasoning(name)) return
    const value = cursor.skip()
    if (!isNull(bytes, value)) last = value.start
  })
  return last
}

function isReasoning(name: string): boolean {
  return name === 'reasoning' || name === 'reasoning_content'
}
