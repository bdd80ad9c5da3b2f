/** The ranges of the schema's CHECK constraints, which values in memory must respect. */

const LARGEST_NANO = 9_000_000_000_000_000_000n

/** Whether a balance fits its column. */
export function isBalance(nano: bigint): boolean {
  return nano >= -LARGEST_NANO && nano <= LARGEST_NANO
}

/** Whether a non-negative amount fits its column. */
export function isAmount(nano: bigint): boolean {
  return nano >= 0n && nano <= LARGEST_NANO
}

/** Whether a count or a time fits its column. */
export function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0
}
