import { z } from 'zod'
import { isJsonObject, type JsonObject } from '../stream/json-object.ts'

/**
 * Lists from a client's body. They are checked up to the first wrong element: `z.array` collects a description of every
 * wrong one, and a body has room for millions, which cost gigabytes.
 */
export function listOf<Element>(isElement: (value: unknown) => value is Element) {
  return z.custom<Element[]>(
    (value) => Array.isArray(value) && value.every((one) => isElement(one)),
  )
}

/** An object whose values are all strings, checked up to the first that is none. */
export const textsByName = z.custom<Readonly<Record<string, string>>>(
  (value) => isJsonObject(value) && Object.values(value).every(isText),
)

export function isText(value: unknown): value is string {
  return typeof value === 'string'
}

/** Whether a value is an object with a text as this member. */
export function hasText<Name extends string>(member: Name) {
  return (value: unknown): value is JsonObject & Readonly<Record<Name, string>> =>
    isJsonObject(value) && isText(value[member])
}
