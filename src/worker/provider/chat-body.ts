import type { Bytes } from '../../protocol/bytes.ts'
import type { Effort } from '../../protocol/effort.ts'
import { ByteSink } from '../http/byte-sink.ts'
import { isNull, JsonCursor, type Range } from '../json/scan.ts'
import { PASSED_MEMBERS, type ChatRequest } from './chat-request.ts'
import type { Route } from './route.ts'

/** Bytes the router may add to a body: member names, effort patch, salt. */
const ADDED_BYTES = 4096

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
  const members = new Map<string, Writer>([
    ['model', (sink) => sink.text(JSON.stringify(route.config.upstream_model))],
    ['messages', (sink) => writeMessages(sink, request, route.config.reasoning?.history_field)],
    ...forwarded(request, route),
    ...jsonMembers(effortPatch(route, effort)),
    ...jsonMembers(route.config.ocr ? OCR_MEMBERS : {}),
    ...jsonMembers(saltMember(route, cacheSalt)),
    ...streamMembers(request),
  ])
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

function forwarded(
  { bytes, members, otherMembers }: ChatRequest,
  route: Route,
): [string, Writer][] {
  const passed = PASSED_MEMBERS.flatMap((name) => copied(name, bytes, members.get(name)))
  const checked = ['temperature', 'max_tokens', 'max_completion_tokens'].flatMap((name) => {
    const range = members.get(name)
    if (range === undefined || isNull(bytes, range)) return []
    return copied(name === 'max_completion_tokens' ? 'max_tokens' : name, bytes, range)
  })
  const chosen = route.config.forward.flatMap((name) => copied(name, bytes, otherMembers.get(name)))
  return [...passed, ...checked, ...chosen]
}

function copied(name: string, bytes: Bytes, range: Range | undefined): [string, Writer][] {
  return range === undefined ? [] : [[name, (sink) => sink.copy(bytes, range.start, range.end)]]
}

function effortPatch(route: Route, effort: Effort | undefined): Readonly<Record<string, unknown>> {
  const patch = effort === undefined ? undefined : route.config.reasoning?.efforts[effort]
  return Object.fromEntries(Object.entries(patch ?? {}).filter(([name]) => !OWN_MEMBERS.has(name)))
}

function saltMember(route: Route, salt: string | undefined): Readonly<Record<string, unknown>> {
  const field = route.config.cache_salt_field
  return field === undefined || salt === undefined ? {} : { [field]: salt }
}

function jsonMembers(values: Readonly<Record<string, unknown>>): [string, Writer][] {
  return Object.entries(values).map(([name, value]) => [
    name,
    (sink) => sink.text(JSON.stringify(value)),
  ])
}

/** Streams always request usage, whatever the caller's options; otherwise the options are forwarded unchanged. */
function streamMembers({ bytes, members, stream }: ChatRequest): [string, Writer][] {
  const range = members.get('stream_options')
  const options = range === undefined || isNull(bytes, range) ? undefined : range
  if (!stream) return copied('stream_options', bytes, options)
  return [
    ['stream', (sink) => sink.text('true')],
    ['stream_options', (sink) => writeStreamOptions(sink, bytes, options)],
  ]
}

function writeStreamOptions(sink: ByteSink, bytes: Bytes, options: Range | undefined): void {
  sink.text('{')
  if (options !== undefined) {
    const cursor = new JsonCursor(bytes, options.start)
    cursor.object((name, start) => {
      const { end } = cursor.skip()
      if (name === 'include_usage') return
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

interface MessageMember extends Range {
  readonly name: string
  readonly value: Range
}

/**
 * An assistant message with its earlier reasoning under the one name that the route accepts, or without it. Where a
 * client sends both names, the last text is kept.
 */
function writeMessage(
  sink: ByteSink,
  bytes: Bytes,
  message: Range,
  historyField: string | undefined,
): void {
  const members: MessageMember[] = []
  const cursor = new JsonCursor(bytes, message.start)
  cursor.object((name, start) => {
    const value = cursor.skip()
    members.push({ name, start, end: value.end, value })
  })
  const isReasoning = ({ name }: MessageMember) =>
    name === 'reasoning' || name === 'reasoning_content'
  const kept =
    historyField === undefined
      ? undefined
      : members.findLast((member) => isReasoning(member) && !isNull(bytes, member.value))
  let separator = '{'
  for (const member of members) {
    const isReplaced = isReasoning(member) || (kept !== undefined && member.name === historyField)
    if (isReplaced && member !== kept) continue
    sink.text(separator)
    separator = ','
    if (member === kept) {
      sink.text(`${JSON.stringify(historyField)}:`)
      sink.copy(bytes, member.value.start, member.value.end)
    } else {
      sink.copy(bytes, member.start, member.end)
    }
  }
  sink.text(separator === '{' ? '{}' : '}')
}
