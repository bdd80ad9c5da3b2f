import { z } from 'zod'
import { EFFORTS, parseEffort, type Effort } from '../../protocol/effort.ts'
import { CheckedMember } from '../completion/checked-member.ts'
import { ApiError } from '../http/errors.ts'

/** The reasoning settings of a request. */
export interface ReadThinking {
  /** Undefined: the default of the route. */
  readonly effort: Effort | undefined
  /** Whether thinking blocks are part of the answer. */
  readonly shown: boolean
  /** The member that names the effort or disables thinking, undefined where none does. */
  readonly member: string | undefined
  /** Whether the request has no thinking settings. */
  readonly isDefault: boolean
}

/** The member in which a request may name an effort. */
const EFFORT = 'output_config.effort'

const thinkingMember = new CheckedMember(
  'thinking',
  z.looseObject({
    type: z.enum(['enabled', 'adaptive', 'disabled']),
    budget_tokens: z.int().min(1).optional(),
    display: z.string().nullish(),
  }),
  'an object of type adaptive or disabled, or enabled with budget_tokens of at least 1',
)

/** The effort for a budget of thinking tokens: the first whose bound it does not exceed. */
const BUDGETS: readonly (readonly [atMost: number, effort: Effort])[] = [
  [2_048, 'low'],
  [8_192, 'medium'],
  [32_768, 'high'],
  [Number.POSITIVE_INFINITY, 'max'],
]

/**
 * Reads the reasoning settings. Clients of this format that do not enable thinking expect none, and rely on all of
 * `max_tokens` for text.
 * @throws ApiError where a member is malformed
 */
export function readThinking(thinking: unknown, effort: string | undefined): ReadThinking {
  const parsed = thinkingMember.optional(thinking)
  const wanted = effort === undefined ? undefined : ladderEffort(effort)
  if (parsed === undefined || parsed.type === 'disabled') {
    const isDefault = parsed === undefined
    return { effort: 'off', shown: false, member: isDefault ? undefined : 'thinking', isDefault }
  }
  const shown = parsed.display !== 'omitted'
  if (wanted !== undefined) return { effort: wanted, shown, member: EFFORT, isDefault: false }
  const budget = parsed.type === 'enabled' ? parsed.budget_tokens : undefined
  if (budget === undefined) return { effort: undefined, shown, member: undefined, isDefault: false }
  const [, byBudget] = BUDGETS.find(([atMost]) => budget <= atMost) ?? []
  return { effort: byBudget, shown, member: 'thinking', isDefault: false }
}

function ladderEffort(effort: string): Effort {
  const known = parseEffort(effort)
  if (known !== undefined) return known
  const message = `"${EFFORT}" must be one of ${EFFORTS.join(', ')}.`
  throw new ApiError('invalid_request_error', message, { param: EFFORT })
}
