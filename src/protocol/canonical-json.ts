import * as z from 'zod'
/** A value that JSON can represent. */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue | undefined }

/**
 * The one canonical text of a JSON value (RFC 8785): members sorted by UTF-16 code units, no spaces, numbers and
 * strings as ECMAScript prints them. Members that are `undefined` are left out.
 * @throws TypeError when a number has no JSON form or a string has a lone surrogate
 */
export function canonicalJson(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map((item: JsonValue) => canonicalJson(item)).join()}]`
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value)
      .filter((member): member is [string, JsonValue] => member[1] !== undefined)
      .toSorted(([left], [right]) => (left < right ? -1 : 1))
      .map(([name, member]) => `${canonicalJson(name)}:${canonicalJson(member)}`)
    return `{${members.join()}}`
  }
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError('not a JSON number')
  if (typeof value === 'string' && !value.isWellFormed()) throw new TypeError('lone surrogate')
  return JSON.stringify(value)
}

/** Whether both are JSON values and equal, in whatever order their members are. */
export function isSameJson(left: unknown, right: unknown): boolean {
  const [one, other] = [left, right].map((value) => z.json().safeParse(value))
  if (!one?.success || !other?.success) return false
  return canonicalJson(one.data) === canonicalJson(other.data)
}
