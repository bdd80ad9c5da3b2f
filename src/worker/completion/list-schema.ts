import { z } from 'zod'
import { isJsonObject, type JsonObject } from '../stream/json-object.ts'

/**
 * A schema for lists in a client's body, which are checked only up to the first wrong element: `z.array` collects a
 * description of every wrong one, and a body may have millions, which would cost gigabytes.
 */
export function listOf<Element>(isElement: (value: unknown) => value is Element) {
  return z.custom<Element[]>(
    (value) => Array.isArray(value) && value.every((one) => isElement(one)),
  )
}

/** A schema for objects whose values are all strings, checked only up to the first wrong value. */
export const textsByName = z.custom<Readonly<Record<string, string>>>(
  (value) => isJsonObject(value) && Object.values(value).every(isText),
)

export function isText(value: unknown): value is string {
  return typeof value === 'string'
}

/** Makes a check for objects that have a string as this member. */
export function hasText<Name extends string>(member: Name) {
  return (value: unknown): value is JsonObject & Readonly<Record<Name, string>> =>
    isJsonObject(value) && isText(value[member])
}
