import type { CheckName } from '../../verify/check-names.ts'

/** One part of a proof: a box of the picture, with the checks that judge it. */
export interface BoxDefinition {
  readonly id: string
  readonly column: Column
  readonly title: string
  /** What is known once it holds. */
  readonly says: string
  readonly checks: readonly CheckName[]
  /** Where given, it holds only if one of these was checked: the others alone do not prove what it says. */
  readonly decisive?: readonly CheckName[]
  /** Boxes without which its own checks mean nothing. */
  readonly restsOn: readonly string[]
  /** Names of documents, as `MalformedEvidence` has them, that are this part. */
  readonly documents?: readonly string[]
  /** Members of the envelope that are this part. */
  readonly members?: readonly string[]
}

export const COLUMNS = {
  exchange: { title: 'The exchange', by: 'signed by the router' },
  hardware: { title: 'The hardware', by: 'vouched for by AMD' },
  binding: { title: 'This router', by: 'vouched for by the chip' },
  release: { title: 'The release', by: 'vouched for by the release root' },
} as const

export type Column = keyof typeof COLUMNS
