import { isDeepStrictEqual } from 'node:util'
import type { ProviderProof } from '../../protocol/provider-proof.ts'
import type { ProvenHop, ProviderChannel, UnattestedProvider } from '../proofs.ts'
import type { RouterHop } from '../sign/router-block.ts'

interface ServiceFacts {
  readonly generation: number
  /** Timeout of TCP and TLS together. */
  readonly connectMs: number
}

/** The current envelope, which can be relied on until `until`, ms. */
interface EnvelopeFacts {
  readonly sha256: string
  readonly until: number
}

interface Tables {
  /** One row, `SINGLE_ROW`. */
  readonly service: ServiceFacts
  /** At most one row, `SINGLE_ROW`. */
  readonly envelope: EnvelopeFacts
  /** The adapter of each configured provider, by name. */
  readonly providers: ProviderProof['adapter']
  /** By provider. */
  readonly channels: ProviderChannel
  /** By `addressKey`. */
  readonly unattested: UnattestedProvider
  /** By `hopKey`. */
  readonly hops: ProvenHop
  /** By the SHA-256 of their configuration. */
  readonly routerHops: RouterHop
}

/** The key of the row of a table that has one. */
export const SINGLE_ROW = ''

/** Everything that a thread needs to carry calls and to sign receipts: plain data. */
export type Facts = { readonly [Name in keyof Tables]: ReadonlyMap<string, Tables[Name]> }

export function hopKey(provider: string, evidenceSha256: string | null): string {
  return JSON.stringify([provider, evidenceSha256])
}

export function addressKey(provider: string, baseUrl: string): string {
  return `${provider} ${baseUrl}`
}

export const NO_FACTS: Facts = {
  service: new Map(),
  envelope: new Map(),
  providers: new Map(),
  channels: new Map(),
  unattested: new Map(),
  hops: new Map(),
  routerHops: new Map(),
}

interface RowChanges<Row> {
  readonly set: readonly (readonly [string, Row])[]
  readonly gone: readonly string[]
}

/** What has changed. */
export type FactChanges = { readonly [Name in keyof Tables]: RowChanges<Tables[Name]> }

/**
 * The changes from one state to the next; undefined where there are none. A row that is still the same object is cheap
 * to compare.
 */
export function changesOf(before: Facts, after: Facts): FactChanges | undefined {
  const changes: FactChanges = {
    service: rowChanges(before.service, after.service),
    envelope: rowChanges(before.envelope, after.envelope),
    providers: rowChanges(before.providers, after.providers),
    channels: rowChanges(before.channels, after.channels),
    unattested: rowChanges(before.unattested, after.unattested),
    hops: rowChanges(before.hops, after.hops),
    routerHops: rowChanges(before.routerHops, after.routerHops),
  }
  const some = Object.values(changes).some(({ set, gone }) => set.length + gone.length > 0)
  return some ? changes : undefined
}

function rowChanges<Row>(
  before: ReadonlyMap<string, Row>,
  after: ReadonlyMap<string, Row>,
): RowChanges<Row> {
  return {
    set: [...after].filter(([key, row]) => !isDeepStrictEqual(before.get(key), row)),
    gone: [...before.keys()].filter((key) => !after.has(key)),
  }
}

/** The state after these changes; rows that did not change stay the same objects. */
export function applied(before: Facts, changes: FactChanges): Facts {
  return {
    service: appliedRows(before.service, changes.service),
    envelope: appliedRows(before.envelope, changes.envelope),
    providers: appliedRows(before.providers, changes.providers),
    channels: appliedRows(before.channels, changes.channels),
    unattested: appliedRows(before.unattested, changes.unattested),
    hops: appliedRows(before.hops, changes.hops),
    routerHops: appliedRows(before.routerHops, changes.routerHops),
  }
}

function appliedRows<Row>(
  before: ReadonlyMap<string, Row>,
  { set, gone }: RowChanges<Row>,
): ReadonlyMap<string, Row> {
  if (set.length + gone.length === 0) return before
  const rows = new Map([...before, ...set])
  for (const key of gone) rows.delete(key)
  return rows
}
