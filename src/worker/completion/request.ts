import type { Bytes } from '../../protocol/bytes.ts'
import { parseEffort } from '../../protocol/effort.ts'
import { ApiError } from '../http/errors.ts'
import { isNull, JsonCursor, JsonSyntaxError, valueOf, type Range } from '../json/scan.ts'
import {
  ATTESTATION_MEMBER,
  readAttestation,
  refuseMistakenMember,
  repeatedMember,
} from '../http/attestation-member.ts'
import { REASONING_MEMBERS, type ChatRequest } from '../provider/chat-request.ts'
import { READ_MEMBERS, REFUSED_MEMBERS } from './chat-members.ts'
import { requireFewUnknown } from './few-entries.ts'
import { refusalOf } from './member-rules.ts'
import { checkMembers } from './request-members.ts'
import { scanMessages, type MessagesScan } from './request-messages.ts'

/** Every member that the router reads or sends to every route; for all others only the byte range is recorded. */
const KNOWN_MEMBERS: ReadonlySet<string> = new Set([...READ_MEMBERS, ...REASONING_MEMBERS])

/** Maximum size of a value that is parsed here, bytes; no valid request has a longer one. */
const MAX_VALUE_BYTES = 64 * 1024

/** Maximum number of answers, more than any provider returns for one request; keeps a reservation finite. */
const MAX_CHOICES = 16_384

/** A decimal digit of any script. */
const HAS_DIGIT = /\p{Nd}/u

/**
 * Reads and checks a chat completion body as far as possible without the catalogue; what depends on the planned route is
 * checked by `checkReasoningMembers` and `checkOcrRequest`. Of a repeated member the last one counts, and null counts as
 * absent (see docs/api.md); `attestation` must not be repeated.
 * @throws ApiError missing_field for `model` and `messages`, invalid_attestation_constraint, else invalid_request_error;
 *   none quotes the body
 */
export function parseChatRequest(bytes: Bytes): ChatRequest {
  const { members, otherMembers, messages, attestation } = readOutline(bytes)
  refuseForeign(bytes, otherMembers)
  const present = (name: string) => {
    const range = members.get(name)
    return range === undefined || isNull(bytes, range) ? undefined : range
  }
  const valueNamed = (name: string) => {
    const range = present(name)
    if (range === undefined) return undefined
    if (range.end - range.start > MAX_VALUE_BYTES) throw invalid(`"${name}" is too long.`, name)
    return valueOf(bytes, range)
  }
  for (const name of ['model', 'messages']) {
    if (present(name) === undefined) throw missing(name)
  }
  const checked = checkMembers(valueNamed)
  if (checked.model === '') throw missing('model')
  if (messages === undefined || 'problem' in messages) {
    throw invalid(messages?.problem ?? '"messages" must be an array.', 'messages')
  }
  return {
    bytes,
    ...checked,
    constraints: attestation && readAttestation(bytes.subarray(attestation.start, attestation.end)),
    reasoning: effortOf(valueNamed('reasoning')),
    effortMatch: 'exact',
    effortMember: present('reasoning') && 'reasoning',
    reasoningHiddenByDefault: false,
    reasoningMembers: REASONING_MEMBERS.filter(present),
    choices: choicesOf(valueNamed('n')),
    members,
    otherMembers,
    messages,
  }
}

/**
 * Refuses unsupported members, and misspellings of `attestation`. Members about reasoning are left to
 * `checkReasoningMembers`, because OCR routes have other errors for them.
 */
function refuseForeign(bytes: Bytes, otherMembers: Outline['otherMembers']): void {
  for (const [name, range] of otherMembers) {
    if (isNull(bytes, range)) continue
    const rule = REFUSED_MEMBERS.get(name)
    if (rule !== undefined) throw refusalOf(rule)
    refuseMistakenMember(name)
  }
}

interface Outline {
  readonly members: ReadonlyMap<string, Range>
  readonly otherMembers: ReadonlyMap<string, Range>
  readonly messages: MessagesScan | undefined
  readonly attestation: Range | undefined
}

/**
 * The single pass over the whole body: checks its syntax and finds the members worth keeping. 10 MiB of chat in messages of
 * ordinary length take 20 to 40 ms on Node 24.
 */
function readOutline(bytes: Bytes): Outline {
  const members = new Map<string, Range>()
  const otherMembers = new Map<string, Range>()
  let messages: MessagesScan | undefined
  let attestation: Range | undefined
  const cursor = new JsonCursor(bytes)
  try {
    if (cursor.peek() !== 'object') throw invalid('The request body must be a JSON object.')
    cursor.object((name) => {
      if (name === 'messages') {
        messages = scanMessages(cursor, bytes)
        members.set(name, messages)
      } else if (name === ATTESTATION_MEMBER) {
        if (attestation !== undefined) throw repeatedMember()
        attestation = cursor.skip()
      } else if (KNOWN_MEMBERS.has(name)) {
        members.set(name, cursor.skip())
      } else {
        otherMembers.set(name, cursor.skip())
        requireFewUnknown(otherMembers.size)
      }
    })
    cursor.end()
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error
    throw invalid(`The request body is not valid JSON: ${error.message}.`)
  }
  return { members, otherMembers, messages, attestation }
}

function effortOf(reasoning: unknown): ChatRequest['reasoning'] {
  return typeof reasoning === 'string' ? parseEffort(reasoning) : undefined
}

/**
 * The number of answers that `n` may request. `n` is forwarded unchecked, so a number in a string counts too: some providers
 * accept one. Python reads `"1_000"` as 1,000. A text with digits that providers may read differently counts as the maximum.
 */
function choicesOf(n: unknown): number {
  if (typeof n !== 'number' && typeof n !== 'string') return 1
  const choices = Math.ceil(Number(typeof n === 'string' ? n.replaceAll('_', '') : n))
  if (Number.isNaN(choices)) return HAS_DIGIT.test(String(n)) ? MAX_CHOICES : 1
  return Math.min(Math.max(choices, 1), MAX_CHOICES)
}

function missing(name: string): ApiError {
  return new ApiError('missing_field', `"${name}" is missing.`, { param: name })
}

function invalid(message: string, param?: string): ApiError {
  return new ApiError('invalid_request_error', message, param === undefined ? {} : { param })
}
