import { DEFAULT_FORWARD } from '../../protocol/forwarded-members.ts'
import { PASSED_MEMBERS } from '../provider/chat-request.ts'
import type { MemberRule } from './member-rules.ts'

/** What becomes of one member of a chat completion; of some the configuration of a route decides. */
export interface ChatMemberRule extends Omit<MemberRule, 'becomes'> {
  readonly becomes: MemberRule['becomes'] | 'by route'
}

/**
 * Every member of a request to `/v1/chat/completions` that is known by name. Others are handed on where the `forward`
 * of a route names them, and dropped elsewhere. The parser goes by this table, and `docs/front-doors.md` shows it.
 */
export const CHAT_MEMBERS: readonly ChatMemberRule[] = [
  { member: 'model', becomes: 'mapped', note: 'the route selector' },
  {
    member: 'messages',
    becomes: 'mapped',
    note: "`messages` as they came; earlier reasoning goes by the route's `history_field`",
  },
  { member: 'stream', becomes: 'mapped', note: 'whether the answer is streamed' },
  {
    member: 'stream_options',
    becomes: 'mapped',
    note: '`include_usage` puts `usage` on the last chunk; the provider is always asked for it, and gets the other options as they are',
  },
  { member: 'temperature', becomes: 'mapped', note: '`temperature`, from 0 to 2' },
  { member: 'max_tokens', becomes: 'mapped', note: '`max_tokens`' },
  {
    member: 'max_completion_tokens',
    becomes: 'mapped',
    note: '`max_tokens`; where both are given they must be the same',
  },
  { member: 'failover', becomes: 'mapped', note: 'route selectors to try next, at most 5' },
  {
    member: 'include_reasoning',
    becomes: 'mapped',
    note: '`false` leaves reasoning out of the answer',
  },
  { member: 'reasoning', becomes: 'mapped', note: 'the effort, on the ladder of the route' },
  ...PASSED_MEMBERS.map((member) => ({
    member,
    becomes: 'mapped' as const,
    note: `\`${member}\`, handed on unread`,
  })),
  ...DEFAULT_FORWARD.map((member) => ({
    member,
    becomes: 'by route' as const,
    note: "handed on unread, unless the route's `forward` leaves it out; then dropped",
  })),
  { member: 'reasoning_effort', becomes: 'refused', note: 'not supported; use "reasoning"' },
  { member: 'chat_template_kwargs', becomes: 'refused', note: 'not supported; use "reasoning"' },
  { member: 'functions', becomes: 'refused', note: 'not supported; use "tools"' },
  { member: 'function_call', becomes: 'refused', note: 'not supported; use "tool_choice"' },
]

/** The members that every request is read for, whatever its routes forward. */
export const READ_MEMBERS: ReadonlySet<string> = new Set(
  CHAT_MEMBERS.filter(({ becomes }) => becomes === 'mapped').map(({ member }) => member),
)

/** The members that no request may have, by name. */
export const REFUSED_MEMBERS: ReadonlyMap<string, ChatMemberRule> = new Map(
  CHAT_MEMBERS.filter(({ becomes }) => becomes === 'refused').map((rule) => [rule.member, rule]),
)
