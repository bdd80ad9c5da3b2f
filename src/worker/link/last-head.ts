import type { ReceiptHead, SignResponse } from '../../protocol/link.ts'
import type { SignedReceipt } from './link.ts'

/** The head that the daemon sent last for each provider. */
export class LastHeads {
  readonly #byProvider = new Map<string, LastHead>()

  of(provider: string): LastHead {
    const known = this.#byProvider.get(provider)
    if (known !== undefined) return known
    const head = new LastHead()
    this.#byProvider.set(provider, head)
    return head
  }
}

/** The head that the daemon sent last for one provider. */
export class LastHead {
  #known: ReceiptHead | undefined

  get known(): ReceiptHead | undefined {
    return this.#known
  }

  /**
   * The receipts in an answer of the daemon.
   * @param named the head that the request named as known
   * @throws Error when there are fewer receipts than `count`, or one names a missing head
   */
  receiptsOf(
    { kid, heads, receipts: signed }: SignResponse,
    count: number,
    named: ReceiptHead | undefined,
  ): SignedReceipt[] {
    const whole = heads.map((head) => this.#whole(head, named))
    return Array.from({ length: count }, (_, index) => {
      const receipt = signed[index]
      const head = receipt && whole[receipt.head]
      if (receipt === undefined || head === undefined) {
        throw new Error('internal error: the daemon signed too little')
      }
      const { tail, sha256 } = receipt
      return { kid, head, tail, sha256 }
    })
  }

  /**
   * Completes a head of the daemon's answer with its text, which the daemon omits for the head that the request named as
   * known.
   * @returns undefined where the text of another head is missing
   */
  #whole(
    { text, ...head }: SignResponse['heads'][number],
    named: ReceiptHead | undefined,
  ): ReceiptHead | undefined {
    if (text !== undefined) return (this.#known = { ...head, text })
    return named?.sha256 === head.sha256 ? { ...head, text: named.text } : undefined
  }
}
