import type { SignRequest, SignResponse } from '../../protocol/link.ts'
import { createBatcher, type BatchHost } from '../batching/batcher.ts'
import { LinkUnavailable, type SignedReceipt, type UnsignedReceipt } from './link.ts'

/** As many as the daemon signs within a few milliseconds. */
const MAX_RECEIPTS = 64

type Sign = (request: SignRequest) => Promise<SignResponse>

/**
 * Has the receipts of one moment signed in one call. Each provider has batches of its own, because for some the
 * daemon first asks the provider for a signature too, and a slow one shall delay nobody else's receipts. The
 * daemon signs all of a batch or none: what it refuses together is asked for again one by one, so that one
 * receipt it cannot sign takes no other with it.
 *
 * @param timeoutMs of one call
 * @param late what a receipt fails with whose batch was never answered
 */
export function batchedSigning(
  host: BatchHost,
  sign: Sign,
  timeoutMs: number,
  timeoutError: () => Error,
): (receipt: UnsignedReceipt) => Promise<SignedReceipt> {
  const byProvider = new Map<string, (receipt: UnsignedReceipt) => Promise<Outcome>>()

  function batchesOf(provider: string) {
    const known = byProvider.get(provider)
    if (known !== undefined) return known
    const ask = createBatcher<UnsignedReceipt, Outcome>(host, {
      run: (receipts) => signAll(sign, receipts),
      maxItems: MAX_RECEIPTS,
      // Two calls: the batch, and once more by itself.
      joinTimeoutMs: 2 * timeoutMs,
      timeoutError,
    })
    byProvider.set(provider, ask)
    return ask
  }

  return async (receipt) => {
    const outcome = await batchesOf(receipt.provider)(receipt)
    if ('failure' in outcome) throw outcome.failure
    return outcome.signed
  }
}

type Outcome = { readonly signed: SignedReceipt } | { readonly failure: unknown }

async function signAll(sign: Sign, receipts: readonly UnsignedReceipt[]): Promise<Outcome[]> {
  try {
    return await signTogether(sign, receipts)
  } catch (failure) {
    const refused = failure instanceof LinkUnavailable && failure.failure === 'refused'
    if (!refused || receipts.length === 1) return receipts.map(() => ({ failure }))
    const alone = receipts.map((receipt) => signAll(sign, [receipt]))
    return (await Promise.all(alone)).flat()
  }
}

async function signTogether(sign: Sign, receipts: readonly UnsignedReceipt[]): Promise<Outcome[]> {
  const { kid, receipts: signed } = await sign({ receipts: [...receipts] })
  return receipts.map((_, index) => {
    const receipt = signed[index]
    if (receipt === undefined) throw new Error('internal error: the daemon signed too little')
    return { signed: { ...receipt, kid } }
  })
}
