import type { SignRequest, SignResponse } from '../../protocol/link.ts'
import type { BatchDeps } from '../batching/batcher.ts'
import { createMicrotaskBatcher } from '../batching/microtask-batcher.ts'
import { LastHeads, type LastHead } from './last-head.ts'
import { LinkUnavailable, type SignedReceipt, type UnsignedReceipt } from './link.ts'

/** Receipts per call: the daemon signs this many within a few milliseconds. */
const MAX_RECEIPTS = 64

type Sign = (request: SignRequest) => Promise<SignResponse>

/**
 * Signs receipts that are requested at the same time in one call to the daemon. Batches are separate per provider: for some
 * providers the daemon first fetches the provider's own signature, and a slow provider must not delay the receipts of the
 * others. The daemon signs a whole batch or none of it. When it refuses a batch, each receipt is sent again alone, so that
 * one receipt that cannot be signed does not fail the rest.
 *
 * The head of a provider's receipts stays the same for minutes or hours, so the last one is cached and not sent again.
 *
 * A call over the link costs the worker 125 to 140 us of CPU, a receipt in a shared call 30 to 50 us
 * (docs/performance-findings.md, "Shared calls"). Without batching, a whole request costs 1.14 times the CPU at 16 and at 64
 * connections ("What each batcher saves").
 */
export function batchedSigning(
  host: BatchDeps,
  sign: Sign,
  lastHeads: LastHeads = new LastHeads(),
): (receipt: UnsignedReceipt) => Promise<SignedReceipt> {
  const byProvider = new Map<string, (receipt: UnsignedReceipt) => Promise<Outcome>>()

  function batchesOf(provider: string) {
    const known = byProvider.get(provider)
    if (known !== undefined) return known
    const heads = lastHeads.of(provider)
    // Settlements are coalesced before they are signed.
    const signBatched = createMicrotaskBatcher<UnsignedReceipt, Outcome>(host, {
      run: (receipts) => signAll(sign, heads, receipts),
      maxItems: MAX_RECEIPTS,
    })
    byProvider.set(provider, signBatched)
    return signBatched
  }

  return async (receipt) => {
    const outcome = await batchesOf(receipt.provider)(receipt)
    if ('failure' in outcome) throw outcome.failure
    return outcome.signed
  }
}

type Outcome = { readonly signed: SignedReceipt } | { readonly failure: unknown }

async function signAll(
  sign: Sign,
  heads: LastHead,
  receipts: readonly UnsignedReceipt[],
): Promise<Outcome[]> {
  try {
    return await signBatch(sign, heads, receipts)
  } catch (failure) {
    const refused = failure instanceof LinkUnavailable && failure.failure === 'refused'
    if (!refused || receipts.length === 1) return receipts.map(() => ({ failure }))
    const alone = receipts.map((receipt) => signAll(sign, heads, [receipt]))
    return (await Promise.all(alone)).flat()
  }
}

async function signBatch(
  sign: Sign,
  lastHead: LastHead,
  receipts: readonly UnsignedReceipt[],
): Promise<Outcome[]> {
  const known = lastHead.known
  const request = { receipts: [...receipts], ...(known && { known_head: known.sha256 }) }
  return lastHead
    .receiptsOf(await sign(request), receipts.length, known)
    .map((signed) => ({ signed }))
}
