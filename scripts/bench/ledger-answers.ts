import type { LedgerCall } from '../../src/worker/storage/ledger-calls.ts'

/** How the outcomes of admissions and settlements that did what they should are written in JSON. */
const DONE = {
  admit: '"admitted":true',
  settle: '"outcome":"settled","missingEvidence":[]',
} as const

/**
 * The number of settlements that a call was answered. Counted in the text: parsing it would take from the ledger the cores that they share.
 * @throws Error when an operation was refused, which would cost less
 */
export function settledIn(answer: string, operations: readonly LedgerCall[]): number {
  const asked = (kind: keyof typeof DONE) => operations.filter((each) => each.kind === kind).length
  const done = (kind: keyof typeof DONE) => answer.split(DONE[kind]).length - 1
  if (done('admit') !== asked('admit') || done('settle') !== asked('settle')) {
    throw new Error(`an operation was refused: ${answer.slice(0, 300)}`)
  }
  return done('settle')
}
