import { DEFAULT_FORWARD } from '../../protocol/forwarded-members.ts'
import { PASSED_MEMBERS } from '../provider/chat-request.ts'
import { mapped, refused, type MemberRule } from './member-rules.ts'

/** How one member of a chat completion request is treated; for some members a route's configuration decides. */
export interface ChatMemberRule extends Omit<MemberRule, 'becomes'> {
  readonly becomes: MemberRule['becomes'] | 'by route'
}

/**
 * Every known member of a request to `/v1/chat/completions`. Others are forwarded where the `forward` of a route names them,
 * and dropped otherwise. The parser follows this table, and `docs/api-formats.md` shows it.
 */
export const CHAT_MEMBERS: readonly ChatMemberRule[] = [
  mapped('model', 'the route selector'),
  mapped(
    'messages',
    "`messages` as they came; earlier reasoning goes by the route's `history_field`",
  ),
  mapped('stream', 'whether the answer is streamed'),
  mapped(
    'stream_options',
    '`include_usage` puts `usage` on the last chunk; the provider is always asked for it, and gets the other options as they are, besides `continuous_usage_stats`',
  ),
  mapped('temperature', '`temperature`, from 0 to 2'),
  mapped('max_tokens', '`max_tokens`'),
  mapped('max_completion_tokens', '`max_tokens`; where both are given they must be the same'),
  mapped('failover', 'route selectors to try next, at most 5'),
  mapped('attestation', 'what the provider must meet; never forwarded'),
  mapped('include_reasoning', '`false` leaves reasoning out of the answer'),
  mapped('reasoning', 'the effort, on the ladder of the route'),
  ...PASSED_MEMBERS.map((member) => mapped(member, `\`${member}\`, forwarded unread`)),
  ...DEFAULT_FORWARD.map((member) => ({
    member,
    becomes: 'by route' as const,
    note: "forwarded unread, unless the route's `forward` leaves it out; then dropped",
  })),
  refused('reasoning_effort', 'not supported; use "reasoning"'),
  refused('chat_template_kwargs', 'not supported; use "reasoning"'),
  refused('functions', 'not supported; use "tools"'),
  refused('function_call', 'not supported; use "tool_choice"'),
]

/** The members that are read in every request, whatever its routes forward. */
export const READ_MEMBERS: ReadonlySet<string> = new Set(
  CHAT_MEMBERS.filter(({ becomes }) => becomes === 'mapped').map(({ member }) => member),
)

/** The members that are refused in every request, by name. */
export const REFUSED_MEMBERS: ReadonlyMap<string, ChatMemberRule> = new Map(
  CHAT_MEMBERS.filter(({ becomes }) => becomes === 'refused').map((rule) => [rule.member, rule]),
)
