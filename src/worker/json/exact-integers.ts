/** So many digits have the integers that a double may not hold, at least. */
const LONG_NUMBER = /\d{16}/

/** Longer texts are parsed without looking at each value, which takes several times as long, characters. */
const MAX_CHARACTERS = 256 * 1024

type RawJson = (text: string) => unknown

/** What a parser says of the value that it has parsed. TypeScript does not know it yet. */
interface ParsedFrom {
  readonly source?: string
}

/**
 * Parses JSON text whose values are only to be written again: integers that a double cannot hold, such as long ids, are
 * then written as they were.
 */
export function parseToWrite(text: string): unknown {
  const isPlain = text.length > MAX_CHARACTERS || !LONG_NUMBER.test(text)
  return isPlain ? JSON.parse(text) : JSON.parse(text, asWritten)
}

/** Whether a value of `parseToWrite` is an integer that is written as it was: in JavaScript it is an object. */
export function isExactInteger(value: unknown): boolean {
  const isRaw: unknown = Reflect.get(JSON, 'isRawJSON')
  return isPredicate(isRaw) && isRaw(value)
}

function asWritten(_name: string, value: unknown, { source }: ParsedFrom = {}): unknown {
  const rawJson: unknown = Reflect.get(JSON, 'rawJSON')
  return source !== undefined && isRounded(value) && isRawJson(rawJson) ? rawJson(source) : value
}

/** Whether a parsed value holds an integer that is not the one of its text, or may not be. */
export function holdsRounded(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return isRounded(value)
  return Object.values(value).some(holdsRounded)
}

function isRounded(value: unknown): boolean {
  return Number.isInteger(value) && !Number.isSafeInteger(value)
}

function isRawJson(value: unknown): value is RawJson {
  return typeof value === 'function'
}

function isPredicate(value: unknown): value is (one: unknown) => boolean {
  return typeof value === 'function'
}
