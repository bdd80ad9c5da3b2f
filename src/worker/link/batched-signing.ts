import type { ReceiptHead, SignRequest, SignResponse } from '../../protocol/link.ts'
import type { BatchDeps } from '../batching/batcher.ts'
import { createMomentBatcher } from '../batching/moment-batcher.ts'
import { LinkUnavailable, type SignedReceipt, type UnsignedReceipt } from './link.ts'

/** Receipts per call: the daemon signs this many within a few milliseconds. */
const MAX_RECEIPTS = 64

type Sign = (request: SignRequest) => Promise<SignResponse>

/**
 * Signs the receipts of one moment in one call to the daemon. Batches are kept apart by provider: for
 * some providers the daemon first fetches the provider's own signature, and a slow provider must not delay the receipts
 * of the others. The daemon signs a whole batch or none of it. When it refuses a batch, each receipt is sent again
 * alone, so that one receipt that cannot be signed does not fail the rest.
 *
 * The head of a provider's receipts is the same for minutes or hours, so the last one is kept and not sent again.
 *
 * A call over the link costs the worker 125 to 140 us of CPU, a receipt in a shared call 30 to 50 us
 * (docs/performance-findings.md, "Shared calls"). Without batching, a whole request costs 1.14 times the CPU at 16 and
 * at 64 connections ("What each batcher saves").
 */
export function batchedSigning(
  host: BatchDeps,
  sign: Sign,
): (receipt: UnsignedReceipt) => Promise<SignedReceipt> {
  const byProvider = new Map<string, (receipt: UnsignedReceipt) => Promise<Outcome>>()

  function batchesOf(provider: string) {
    const known = byProvider.get(provider)
    if (known !== undefined) return known
    const heads = new LastHead()
    // Settlements are coalesced before they are signed.
    const signBatched = createMomentBatcher<UnsignedReceipt, Outcome>(host, {
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
  const { kid, heads, receipts: signed } = await sign(request)
  const whole = heads.map((head) => lastHead.whole(head, known))
  return receipts.map((_, index) => {
    const receipt = signed[index]
    const head = receipt && whole[receipt.head]
    if (receipt === undefined || head === undefined) {
      throw new Error('internal error: the daemon signed too little')
    }
    const { tail, sha256 } = receipt
    return { signed: { kid, head, tail, sha256 } }
  })
}

/** The head that the daemon sent last. */
class LastHead {
  #known: ReceiptHead | undefined

  get known(): ReceiptHead | undefined {
    return this.#known
  }

  /**
   * A head of the daemon's answer, with its text. The daemon leaves out the text of the head that the call named as known; undefined:
   * it left out that of another one.
   */
  whole(
    { text, ...head }: SignResponse['heads'][number],
    told: ReceiptHead | undefined,
  ): ReceiptHead | undefined {
    if (text !== undefined) return (this.#known = { ...head, text })
    return told?.sha256 === head.sha256 ? { ...head, text: told.text } : undefined
  }
}
