import type { LedgerCall } from '../../src/worker/storage/ledger-calls.ts'

/** The JSON text of a successful admission and a successful settlement in an answer. */
const DONE = {
  admit: '"admitted":true',
  settle: '"outcome":"settled","missingEvidence":[]',
} as const

/**
 * The number of settlements in the answer to a call. Counts occurrences in the text: parsing would use CPU that the
 * driver shares with the ledger.
 * @throws Error when an operation was refused, because refusals are cheaper than successes
 */
export function settledIn(answer: string, operations: readonly LedgerCall[]): number {
  const asked = (kind: keyof typeof DONE) => operations.filter((each) => each.kind === kind).length
  const done = (kind: keyof typeof DONE) => answer.split(DONE[kind]).length - 1
  if (done('admit') !== asked('admit') || done('settle') !== asked('settle')) {
    throw new Error(`an operation was refused: ${answer.slice(0, 300)}`)
  }
  return done('settle')
}
