import { z } from 'zod'
import { EFFORTS, parseEffort } from '../../protocol/effort.ts'
import { isSelector } from '../../protocol/selector.ts'
import { ApiError } from '../http/errors.ts'
import type { Operation } from '../http/operation.ts'
import type { ChatRequest } from '../provider/chat-request.ts'
import { constraintsOf, REQUIRE_HEADER_DOC } from '../http/attestation-member.ts'
import { MAX_FAILOVERS } from './request-members.ts'

/** Members of a request that may also come in headers, for clients that cannot set body members. */

const FAILOVER_HEADER = 'X-Service-Failover'
const REASONING_HEADER = 'X-Service-Reasoning'

/** The headers as the interface description has them. */
export const MEMBER_HEADERS_DOC: NonNullable<Operation['headers']> = {
  ...REQUIRE_HEADER_DOC,
  [FAILOVER_HEADER]: {
    description: `Route selectors to fail over to, with commas between them; ${MAX_FAILOVERS} at most. What \`failover\` is in a body.`,
    schema: z.string(),
  },
  [REASONING_HEADER]: {
    description: 'The reasoning effort. What `reasoning` is in the body of a chat completion.',
    schema: z.enum([...EFFORTS, 'none']),
  },
}

/**
 * Adds failover, reasoning and attestation from the headers. Where the body has the same member, both must agree.
 * @throws ApiError invalid_parameter or invalid_attestation_constraint for a malformed header; invalid_request_error where
 *   header and body differ
 */
export function withHeaderMembers(chat: ChatRequest, headers: Headers): ChatRequest {
  const failover = failoverOf(chat.failover, headers)
  const constraints = constraintsOf(chat.constraints, headers)
  return withReasoning({ ...chat, failover, constraints }, headers)
}

/**
 * The failover list of the body, or of the header where the body has none.
 * @throws ApiError as `withHeaderMembers`
 */
export function failoverOf(given: readonly string[], headers: Headers): readonly string[] {
  const text = headers.get(FAILOVER_HEADER)
  if (text === null) return given
  const selectors = text.split(',').map((one) => one.trim())
  if (selectors.length > MAX_FAILOVERS || !selectors.every(isSelector)) {
    const most = `at most ${MAX_FAILOVERS} route selectors with commas between them`
    throw malformed(FAILOVER_HEADER, most)
  }
  if (given.length === 0) return selectors
  if (given.join(',') !== selectors.join(',')) throw different(FAILOVER_HEADER, 'failover')
  return given
}

function withReasoning(chat: ChatRequest, headers: Headers): ChatRequest {
  const text = headers.get(REASONING_HEADER)
  if (text === null) return chat
  const effort = parseEffort(text.trim().toLowerCase())
  if (effort === undefined) throw malformed(REASONING_HEADER, `one of none, ${EFFORTS.join(', ')}`)
  const { effortMember, reasoningMembers } = chat
  if (effortMember !== undefined && chat.reasoning !== effort) {
    throw different(REASONING_HEADER, effortMember)
  }
  return {
    ...chat,
    reasoning: effort,
    effortMatch: 'exact',
    // A caller who asks for reasoning explicitly wants to see it, whatever the default of the format.
    includeReasoning: chat.includeReasoning || chat.reasoningHiddenByDefault,
    reasoningMembers: reasoningMembers.length > 0 ? reasoningMembers : ['reasoning'],
  }
}

function malformed(header: string, expected: string): ApiError {
  const message = `The header ${header} must be ${expected}.`
  return new ApiError('invalid_parameter', message, { param: header })
}

function different(header: string, member: string): ApiError {
  const message = `The header ${header} and "${member}" of the body say different things.`
  return new ApiError('invalid_request_error', message, { param: member })
}
