/** An integer that a double may not represent exactly has at least 16 digits. */
const LONG_NUMBER = /\d{16}/

/** Longer texts are parsed without checking each value, which would take several times as long, characters. */
const MAX_CHARACTERS = 256 * 1024

type RawJson = (text: string) => unknown

/** The context that `JSON.parse` passes to its reviver, which TypeScript does not know yet. */
interface ParsedFrom {
  readonly source?: string
}

/**
 * Parses JSON text whose values are only to be serialised again: integers that a double cannot represent, such as long ids,
 * are then written unchanged.
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

/** Whether a parsed value contains an integer that was rounded, or may have been. */
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
