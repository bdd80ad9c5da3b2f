import { z } from 'zod'
import { fromUtf8, type Bytes } from '../../protocol/bytes.ts'
import { holdsRounded, isExactInteger, parseToWrite } from '../json/exact-integers.ts'
import { JsonCursor, type Range } from '../json/scan.ts'
import { isJsonObject, type JsonObject } from '../stream/json-object.ts'

/** Members of a request that hold JSON Schemas, which are only written again. */

/** A JSON Schema in a member that may have come from `withExactIntegers`. */
export const jsonSchemaObject = z.custom<JsonObject>(
  (value) => isJsonObject(value) && !isExactInteger(value),
)

/**
 * The members of a body that was parsed already, the named ones with the integers that a double cannot hold as they are in its text:
 * bounds of 64-bit integers are common in schemas, and servers refuse those that no longer fit. Of a repeated member the last one
 * counts, as for the parser.
 */
export function withExactIntegers(
  members: JsonObject,
  body: Bytes,
  names: readonly string[],
): JsonObject {
  const rounded = new Set(names.filter((name) => isRounded(members[name])))
  if (rounded.size === 0) return members
  const found = new Map<string, Range>()
  const cursor = new JsonCursor(body)
  cursor.object((name) => {
    if (rounded.has(name)) found.set(name, cursor.skip())
  })
  const exact = Array.from(found, ([name, { start, end }]): [string, unknown] => [
    name,
    parseToWrite(fromUtf8(body.subarray(start, end))),
  ])
  return { ...members, ...Object.fromEntries(exact) }
}

function isRounded(value: unknown): boolean {
  return typeof value === 'object' && holdsRounded(value)
}
