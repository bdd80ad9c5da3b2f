import type { JsonObject } from './json-object.ts'

/** The index of a choice; where the provider gave it none, or one that is no number, its position in the list. */
export function choiceIndex({ index }: JsonObject, position: number): number {
  return typeof index === 'number' && Number.isSafeInteger(index) ? index : position
}
