import type { JsonObject } from './json-object.ts'

/** The index of a choice, or its position in the list where the provider sent no valid index. */
export function choiceIndex({ index }: JsonObject, position: number): number {
  return typeof index === 'number' && Number.isSafeInteger(index) ? index : position
}
