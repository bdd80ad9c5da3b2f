/** Median, minimum and maximum over several windows. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** The percentile of the values by nearest rank; NaN without values. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((left, right) => left - right)
  const rank = Math.max(1, Math.ceil((percent / 100) * sorted.length))
  return sorted[rank - 1] ?? Number.NaN
}

/**
 * The spread of the values; undefined when there is none. The median of an even number of values is the mean of the
 * middle two.
 */
export function spreadOf(values: readonly number[]): Spread | undefined {
  const sorted = values.filter(Number.isFinite).toSorted((left, right) => left - right)
  const [min, max] = [sorted.at(0), sorted.at(-1)]
  const low = sorted[Math.floor((sorted.length - 1) / 2)]
  const high = sorted[Math.floor(sorted.length / 2)]
  if (min === undefined || max === undefined || low === undefined || high === undefined)
    return undefined
  return { median: (low + high) / 2, min, max }
}

/** The spread of one figure over the valid windows. */
export function spreadOfValid<Window extends { readonly invalid: string | null }>(
  windows: readonly Window[],
  figure: (window: Window) => number,
): Spread | undefined {
  return spreadOf(windows.filter(({ invalid }) => invalid === null).map(figure))
}
