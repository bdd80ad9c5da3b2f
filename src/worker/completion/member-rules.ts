import { z } from 'zod'
import { fromUtf8, type Bytes } from '../../protocol/bytes.ts'
import { refuseMistakenMember } from '../http/attestation-member.ts'
import { ApiError, type ErrorCode } from '../http/errors.ts'
import { JsonCursor, JsonSyntaxError } from '../json/scan.ts'
import { isJsonObject, type JsonObject } from '../stream/json-object.ts'
import type { ValueLimits } from '../json/value-limits.ts'
import { requireFewUnknown } from './few-entries.ts'
import { requireFewValues } from './few-values.ts'

/**
 * How one request member of one API format is treated. The decoders follow these tables, and `docs/api-formats.md` shows
 * them.
 */
export interface MemberRule {
  readonly member: string
  /** Dropped members are named in the header `X-Service-Dropped-Members` of the answer. */
  readonly becomes: 'mapped' | 'dropped' | 'refused'
  /** What it is mapped to, why it is dropped, or the message to the caller. */
  readonly note: string
  /** Refused members: values that are accepted because they request nothing. Null always is. */
  readonly unless?: readonly unknown[]
  /** Refused members: the code, where it is not `invalid_request_error`. */
  readonly code?: ErrorCode
  /** Refused members: `error.details` of the answer, for clients that act on it. */
  readonly details?: JsonObject
}

/** A member that has a counterpart here, which `note` names. */
export function mapped(member: string, note: string): MemberRule {
  return { member, becomes: 'mapped', note }
}

/** A member that is dropped, with the reason. */
export function dropped(member: string, note: string): MemberRule {
  return { member, becomes: 'dropped', note }
}

/** A member that no request may have; `note` says what to use instead. */
export function refused(
  member: string,
  note: string,
  more: Pick<MemberRule, 'unless' | 'code' | 'details'> = {},
): MemberRule {
  return { member, becomes: 'refused', note, ...more }
}

/** Members separated by their rules. */
export interface SortedMembers {
  /** The mapped members that are present and not null. */
  readonly mapped: JsonObject
  /** The names of dropped members: those the table drops, and all unknown ones. */
  readonly dropped: readonly string[]
}

/**
 * Separates the members of a body by their rules.
 * @throws ApiError for a refused member, with the member as `param`; `invalid_attestation_constraint` for an unknown one
 *   that may be meant as `attestation`; `invalid_request_error` for too many unknown ones
 */
export function sortMembers(
  body: JsonObject,
  rules: ReadonlyMap<string, MemberRule>,
): SortedMembers {
  const known: Record<string, unknown> = {}
  const left: string[] = []
  let unknown = 0
  for (const [name, value] of Object.entries(body)) {
    if (value === null) continue
    const rule = rules.get(name)
    if (rule?.becomes === 'mapped') known[name] = value
    else if (rule?.becomes !== 'refused') {
      if (rule === undefined) {
        refuseMistakenMember(name)
        requireFewUnknown(++unknown)
      }
      left.push(name)
    } else if (rule.unless?.includes(value) !== true) throw refusalOf(rule)
  }
  return { mapped: known, dropped: left }
}

/** The error for a refused member. */
export function refusalOf({ member, note, code, details }: Omit<MemberRule, 'becomes'>): ApiError {
  const known = { param: member, ...(details !== undefined && { info: details }) }
  return new ApiError(code ?? 'invalid_request_error', `"${member}": ${note}.`, known)
}

const MEANING = { mapped: 'Becomes', dropped: 'Dropped:', refused: 'Refused:' } as const

/**
 * Describes every member of a table, with its treatment, for the interface description.
 * @param forms schemas of the checked members; others are described as any value
 */
export function describeMembers(
  rules: readonly MemberRule[],
  forms: Readonly<Record<string, z.ZodType>>,
): Record<string, z.ZodType> {
  return Object.fromEntries(
    rules.map(({ member, becomes, note }) => [
      member,
      (forms[member] ?? z.unknown().optional()).describe(`${MEANING[becomes]} ${note}.`),
    ]),
  )
}

/** A table of rules by member name. */
export function ruleTable(rules: readonly MemberRule[]): ReadonlyMap<string, MemberRule> {
  return new Map(rules.map((rule) => [rule.member, rule]))
}

/**
 * Parses the JSON object of a body.
 * @throws ApiError request_too_large where it has too many values, else invalid_request_error; also where it is nested so
 *   deeply that reading or writing it could overflow the stack
 */
export function parseBodyObject(bytes: Bytes, limits?: ValueLimits): JsonObject {
  let value: unknown
  try {
    requireFewValues(bytes, limits)
    value = JSON.parse(fromUtf8(bytes))
  } catch (error) {
    if (error instanceof ApiError) throw error
    throw new ApiError('invalid_request_error', 'The request body is not valid JSON.')
  }
  refuseDeepNesting(bytes)
  if (!isJsonObject(value)) {
    throw new ApiError('invalid_request_error', 'The request body must be a JSON object.')
  }
  return value
}

function refuseDeepNesting(bytes: Bytes): void {
  try {
    new JsonCursor(bytes).skip()
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error
    throw new ApiError(
      'invalid_request_error',
      `The request body is not valid JSON: ${error.message}.`,
    )
  }
}

/** The named members that are present. */
export function pick(members: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(
    names.flatMap((name) => (members[name] === undefined ? [] : [[name, members[name]]])),
  )
}

/**
 * Requires members. An empty `model` counts as absent: programs send one where nobody has chosen a model.
 * @throws ApiError missing_field for the first named member that is absent
 */
export function requireMembers(members: JsonObject, names: readonly string[]): void {
  const isAbsent = (name: string) =>
    members[name] === undefined || (name === 'model' && members[name] === '')
  const missing = names.find(isAbsent)
  if (missing === undefined) return
  throw new ApiError('missing_field', `"${missing}" is missing.`, { param: missing })
}
