import { fromUtf8 } from '../../protocol/bytes.ts'
import { BrokenStream } from './broken-stream.ts'

/**
 * A provider's JSON object, whose members are all `unknown`. The readers below are written by hand because they run for
 * every frame of every stream, where a schema library would dominate the cost.
 */
export type JsonObject = Readonly<Record<string, unknown>>

/** Whether a parsed JSON value is an object, not an array and not null. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Parses a JSON text that must hold an object.
 * @throws BrokenStream `malformed` when it is not JSON or not an object
 */
export function parseJsonObject(text: string): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new BrokenStream('malformed')
  }
  if (!isJsonObject(value)) throw new BrokenStream('malformed')
  return value
}

/**
 * The text of a whole answer. Some servers send a byte order mark, which is not JSON white space.
 * @throws BrokenStream `malformed` when it is not UTF-8
 */
export function decodeAnswer(body: Uint8Array): string {
  try {
    const text = fromUtf8(body)
    return text.startsWith('\uFEFF') ? text.slice(1) : text
  } catch {
    throw new BrokenStream('malformed')
  }
}

/**
 * Writes a value that `parseJsonObject` returned as JSON.
 * @throws BrokenStream `malformed` when it is nested too deeply to write
 */
export function printJson(value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch {
    throw new BrokenStream('malformed')
  }
}

/**
 * An optional object: undefined when absent or null.
 * @throws BrokenStream `malformed` when the value has another type
 */
export function optionalObject(value: unknown): JsonObject | undefined {
  if (value === undefined || value === null) return undefined
  if (!isJsonObject(value)) throw new BrokenStream('malformed')
  return value
}

/**
 * An optional string: undefined when absent or null.
 * @throws BrokenStream `malformed` when the value has another type
 */
export function optionalString(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'string') throw new BrokenStream('malformed')
  return value
}

/**
 * An optional list of objects: empty when absent or null.
 * @throws BrokenStream `malformed` when the value is no list, or an element is no object
 */
export function optionalObjects(value: unknown): readonly JsonObject[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value) || !value.every(isJsonObject)) throw new BrokenStream('malformed')
  return value
}
