import { concatBytes, utf8, type Bytes } from '../../protocol/bytes.ts'
import type { Steps } from './steps.ts'

/** Number of values that are serialised in one go: about a millisecond of work. A single string may be longer. */
const VALUES_AT_ONCE = 4_096

/**
 * Serialises an object like `JSON.stringify`, to UTF-8 and in steps; a small one in a single step. Its values must be
 * representable in JSON, except that members may be undefined, which are left out.
 */
export function* printInParts(value: object): Steps<Bytes> {
  const parts: Bytes[] = []
  yield* printValue(value, parts)
  const [only] = parts
  return only !== undefined && parts.length === 1 ? only : concatBytes(...parts)
}

function* printValue(value: unknown, parts: Bytes[]): Steps<void> {
  if (!isContainer(value) || count(value, VALUES_AT_ONCE) < VALUES_AT_ONCE) {
    if (parts.length > 0) yield
    parts.push(utf8(JSON.stringify(value)))
  } else if (Array.isArray(value)) yield* printArray(value, parts)
  else yield* printObject(value, parts)
}

function* printObject(value: object, parts: Bytes[]): Steps<void> {
  let separator = '{'
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue
    parts.push(utf8(`${separator}${JSON.stringify(name)}:`))
    yield* printValue(member, parts)
    separator = ','
  }
  parts.push(utf8(separator === '{' ? '{}' : '}'))
}

/** Serialises an array by runs of elements, and large elements by themselves. */
function* printArray(value: readonly unknown[], parts: Bytes[]): Steps<void> {
  let separator = '['
  for (let from = 0; from < value.length;) {
    parts.push(utf8(separator))
    const to = endOfRun(value, from)
    if (to - from === 1) yield* printValue(value[from], parts)
    else {
      yield
      parts.push(utf8(JSON.stringify(value.slice(from, to)).slice(1, -1)))
    }
    from = to
    separator = ','
  }
  parts.push(utf8(separator === '[' ? '[]' : ']'))
}

/**
 * The end of the run of elements that is serialised in one go with the element at `from`; the run has at least that element.
 */
function endOfRun(value: readonly unknown[], from: number): number {
  let left = VALUES_AT_ONCE
  let to = from
  while (to < value.length && left > 0) {
    left -= count(value[to], left)
    to += 1
  }
  return left > 0 || to - from === 1 ? to : to - 1
}

/** The number of values in a value, including itself; counting stops at `most`. */
function count(value: unknown, most: number): number {
  if (!isContainer(value)) return 1
  let counted = 1
  for (const inner of Array.isArray(value) ? value : Object.values(value)) {
    if (counted >= most) return most
    counted += count(inner, most - counted)
  }
  return counted
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
