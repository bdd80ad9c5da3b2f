import type { CheckName } from '../../verify/check-names.ts'

/** One part of a proof: a box of the picture, with the checks that judge it. */
export interface BoxDefinition {
  readonly id: string
  readonly column: Column
  readonly title: string
  /** What is proven once it holds. */
  readonly says: string
  readonly checks: readonly CheckName[]
  /** Where given, it holds only if each of these was checked: the others alone do not prove the statement. */
  readonly decisive?: readonly CheckName[]
  /** Boxes without which its own checks mean nothing. */
  readonly restsOn: readonly string[]
  /** The documents of this part, by their names in `MalformedEvidence`. */
  readonly documents?: readonly string[]
  /** The envelope's members of this part. */
  readonly members?: readonly string[]
}

export const COLUMNS = {
  exchange: { title: 'The exchange', by: 'signed by the router' },
  hardware: { title: 'The hardware', by: 'vouched for by AMD' },
  binding: { title: 'This router', by: 'vouched for by the chip' },
  release: { title: 'The release', by: 'vouched for by the release root' },
} as const

export type Column = keyof typeof COLUMNS
