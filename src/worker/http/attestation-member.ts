import { z } from 'zod'
import type { Bytes } from '../../protocol/bytes.ts'
import {
  constraintsSchema,
  normalized,
  parseConstraints,
  type Constraints,
} from '../../protocol/constraints.ts'
import { isMistakenHeader, isMistakenMember } from '../../protocol/constraint-names.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { ApiError } from './errors.ts'
import type { Operation } from './operation.ts'
import { JsonCursor, JsonSyntaxError, type Range } from '../json/scan.ts'
import type { JsonObject } from '../stream/json-object.ts'

/** The caller's requirements on the provider: the body member `attestation` and the header of the same meaning. */

export const ATTESTATION_MEMBER = 'attestation'

/**
 * Maximum length of the constraints' JSON, many times what their lists may hold. A longer text is not parsed, because
 * parsing 10 MiB would take seconds.
 */
const MAX_LENGTH = 64 * 1024

/** Maximum characters of a client's name that an error repeats. */
const MAX_SHOWN = 64

const REQUIRE_HEADER = 'X-Service-Require'

const COMPACT = '"min=hardware; providers=nova,vega; evidence_sha256=<hex>", one of them at least'

/** The header as the interface description has it. */
export const REQUIRE_HEADER_DOC: NonNullable<Operation['headers']> = {
  [REQUIRE_HEADER]: {
    description: `What the provider must meet: ${COMPACT}. What \`attestation\` is in a body.`,
    schema: z.string(),
  },
}

/**
 * Reads constraints from JSON text. Unlike other members, unknown and repeated names are refused, so that no requirement is
 * ignored.
 * @returns undefined for null
 * @throws ApiError `invalid_attestation_constraint`
 */
export function readAttestation(json: string | Bytes): Constraints | undefined {
  if (json.length > MAX_LENGTH) throw malformed()
  let value: unknown
  try {
    value = parseStrictJson(json, ATTESTATION_MEMBER)
  } catch {
    throw malformed()
  }
  if (value === null) return undefined
  const read = constraintsSchema.safeParse(value)
  if (!read.success) throw malformed()
  return normalized(read.data)
}

/**
 * Reads the constraints of a body that was already parsed by a parser that keeps only the last of a repeated member.
 * @throws ApiError `invalid_attestation_constraint`, also where the body has the member twice
 */
export function attestationOfBody(bytes: Bytes, parsed: JsonObject): Constraints | undefined {
  if (!Object.hasOwn(parsed, ATTESTATION_MEMBER)) return undefined
  const found: Range[] = []
  const cursor = new JsonCursor(bytes)
  try {
    cursor.object((name) => {
      if (name === ATTESTATION_MEMBER) found.push(cursor.skip())
    })
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error
    throw malformed()
  }
  const [range, repeated] = found
  if (repeated !== undefined) throw repeatedMember()
  return range && readAttestation(bytes.subarray(range.start, range.end))
}

/**
 * Combines the requirements of the body and of the header.
 * @param given the constraints of the body
 * @throws ApiError `invalid_attestation_constraint` for a malformed header or one that seems to be a misspelling of it;
 *   `invalid_request_error` where header and body differ
 */
export function constraintsOf(
  given: Constraints | undefined,
  headers: Headers,
): Constraints | undefined {
  refuseMistakenHeaders(headers)
  const text = headers.get(REQUIRE_HEADER)
  if (text === null) return given
  const required = parseConstraints(text)
  if (required === undefined) {
    const message = `The header ${REQUIRE_HEADER} must be of the form ${COMPACT}.`
    throw new ApiError('invalid_attestation_constraint', message, { param: REQUIRE_HEADER })
  }
  if (given === undefined || JSON.stringify(given) === JSON.stringify(required)) return required
  const message = `The header ${REQUIRE_HEADER} and "${ATTESTATION_MEMBER}" of the body say different things.`
  throw new ApiError('invalid_request_error', message, { param: ATTESTATION_MEMBER })
}

/**
 * Refuses an unknown member that may be a misspelling of `attestation`: if it were ignored, nobody would check the caller's
 * requirement.
 * @throws ApiError `invalid_attestation_constraint`
 */
export function refuseMistakenMember(name: string): void {
  if (!isMistakenMember(name)) return
  const message = `${shown(name)} is unknown here and may be meant as "${ATTESTATION_MEMBER}". What the provider must meet is given there, under exactly this name (docs/api.md).`
  throw new ApiError('invalid_attestation_constraint', message, { param: ATTESTATION_MEMBER })
}

function refuseMistakenHeaders(headers: Headers): void {
  for (const name of headers.keys()) {
    if (!isMistakenHeader(name)) continue
    const message = `The header "${name.slice(0, MAX_SHOWN)}" is unknown here and may be meant as ${REQUIRE_HEADER} (docs/api.md).`
    throw new ApiError('invalid_attestation_constraint', message, { param: REQUIRE_HEADER })
  }
}

/** Quotes a name of ordinary length and characters; replaces others. */
function shown(name: string): string {
  return name.length <= MAX_SHOWN && /^[\w[\].-]+$/.test(name) ? `"${name}"` : 'A member'
}

export function repeatedMember(): ApiError {
  const message = `The request body has "${ATTESTATION_MEMBER}" more than once.`
  return new ApiError('invalid_attestation_constraint', message, { param: ATTESTATION_MEMBER })
}

function malformed(): ApiError {
  const message = `"${ATTESTATION_MEMBER}" must be an object with "min", "providers" or "evidence_sha256", and nothing else (docs/api.md).`
  return new ApiError('invalid_attestation_constraint', message, { param: ATTESTATION_MEMBER })
}
