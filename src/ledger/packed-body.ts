import type { Statement } from '../worker/storage/database.ts'
import type { LedgerCall } from '../worker/storage/ledger-calls.ts'
import { unpackBatches, type PackedBatches } from '../worker/storage/packed-batches.ts'
import { unpackCalls } from '../worker/storage/packed-calls.ts'

const decoder = new TextDecoder()
const encoder = new TextEncoder()

/** The batches that a worker packed into a body; undefined where it is malformed. */
export function batchesIn(body: Uint8Array): readonly (readonly Statement[])[] | undefined {
  // The worker is the same program, behind a pinned certificate.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return contentOf(body, (text) => unpackBatches(JSON.parse(text) as PackedBatches))
}

/** The operations that a worker packed into a body; undefined where it is malformed. */
export function callsIn(body: Uint8Array): readonly LedgerCall[] | undefined {
  return contentOf(body, unpackCalls)
}

function contentOf<Content>(
  body: Uint8Array,
  unpack: (text: string) => Content,
): Content | undefined {
  try {
    return unpack(decoder.decode(body))
  } catch {
    return undefined
  }
}

/** Packs outcomes into the body of an answer, JSON. */
export function packBody(outcomes: readonly unknown[]): Uint8Array<ArrayBuffer> {
  return encoder.encode(JSON.stringify(outcomes))
}
