import type { CheckName } from '../../verify/check-names.ts'

/** One part of a proof: a box of the picture, with the checks that judge it. */
export interface BoxDefinition {
  readonly id: string
  readonly column: Column
  readonly title: string
  /** The statement that is proven when the box holds. */
  readonly says: string
  readonly checks: readonly CheckName[]
  /** If given, the box holds only if each of these checks was made: the others alone do not prove the statement. */
  readonly decisive?: readonly CheckName[]
  /** The ids of the boxes that must hold for its own checks to prove anything. */
  readonly restsOn: readonly string[]
  /** The documents that belong to this part, by their names in `MalformedEvidence`. */
  readonly documents?: readonly string[]
  /** The members of the attestation envelope that belong to this part. */
  readonly members?: readonly string[]
}

export const COLUMNS = {
  exchange: { title: 'The exchange', by: 'signed by the router' },
  hardware: { title: 'The hardware', by: 'vouched for by AMD' },
  binding: { title: 'This router', by: 'vouched for by the chip' },
  release: { title: 'The release', by: 'vouched for by the release root' },
} as const

export type Column = keyof typeof COLUMNS
