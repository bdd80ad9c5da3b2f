/** Divides items, in order, into groups of at most `size`, for statements with a limited number of parameters. */
export function inGroups<Item>(items: readonly Item[], size: number): readonly (readonly Item[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, group) =>
    items.slice(group * size, (group + 1) * size),
  )
}
