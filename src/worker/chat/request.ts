import type { Bytes } from '../../protocol/bytes.ts'
import { parseEffort } from '../../protocol/effort.ts'
import { ApiError } from '../http/errors.ts'
import { JsonCursor, JsonSyntaxError, valueOf, type Range } from '../http/json-scan.ts'
import {
  PASSED_MEMBERS,
  REASONING_MEMBERS,
  type ChatRequest,
  type Messages,
} from '../provider/chat-request.ts'
import { checkMembers, SMALL_MEMBERS, type SmallMembers } from './request-members.ts'
import { scanMessages, type MessagesScan } from './request-messages.ts'

/** Every member the router reads or forwards; all others are passed over (interface: unknown members). */
const KNOWN_MEMBERS: ReadonlySet<string> = new Set([
  ...SMALL_MEMBERS,
  ...PASSED_MEMBERS,
  ...REASONING_MEMBERS,
  'messages',
  'skip_special_tokens',
])

/** What one pass over the body finds. */
interface Outline {
  readonly members: Map<string, Range>
  messages: MessagesScan | undefined
}

/**
 * Reads and checks a chat completion body as far as that needs no catalogue: what hangs on the planned route
 * is left to `checkReasoningMembers` and `checkOcrRequest`. Of a repeated member the last one counts; an
 * optional member that is null counts as absent.
 * @throws ApiError missing_field for `model` and `messages`, else invalid_request_error
 */
export function parseChatRequest(bytes: Bytes): ChatRequest {
  const { members, messages } = outline(bytes)
  const small = checkMembers((name) => {
    const range = members.get(name)
    return range === undefined ? undefined : valueOf(bytes, range)
  })
  const reasoningMembers = REASONING_MEMBERS.filter((name) => {
    const range = members.get(name)
    return range !== undefined && valueOf(bytes, range) !== null
  })
  return {
    bytes,
    ...settled(small),
    reasoning: reasoningMembers.length === 1 ? effortOf(bytes, members.get('reasoning')) : undefined,
    reasoningMembers,
    members,
    messages: checkedMessages(messages),
  }
}
