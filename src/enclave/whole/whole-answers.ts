import { traceError } from '../../protocol/error-trace.ts'
import { MAX_MESSAGE_BODY_BYTES } from '../../protocol/link-messages.ts'
import { LINK_PATHS, type SignResponse } from '../../protocol/link.ts'
import type { OrderedCall, TellWhole, WriteWhole, WrittenWhole } from '../egress/ordered-whole.ts'
import type { Log } from '../log.ts'
import type { InstantSigner } from '../sign/receipt-signer.ts'
import { signWhole, writeWhole, type UnsignedWhole } from './write-whole.ts'

export interface WholeAnswersDeps {
  readonly sign: InstantSigner
  /** Ms. */
  readonly now: () => number
  readonly log: Log
}

interface Item {
  readonly call: OrderedCall
  readonly answer: Buffer
  readonly tell: TellWhole
}

/**
 * Writes and signs the whole answers that workers have ordered. Those that came in one turn of the event loop are written together, and
 * then signed together: work between two signatures makes the second one take nearly twice as long
 * (docs/performance-findings.md, "Whole answers").
 */
export class WholeAnswers {
  readonly #deps: WholeAnswersDeps
  readonly #items: Item[] = []

  constructor(deps: WholeAnswersDeps) {
    this.#deps = deps
  }

  readonly add: WriteWhole = (call, answer, tell) => {
    this.#items.push({ call, answer, tell })
    if (this.#items.length === 1) setImmediate(() => this.#finish(this.#items.splice(0)))
  }

  #finish(items: readonly Item[]): void {
    const { sign, now } = this.#deps
    const at = now()
    const written = items.map(({ call, answer }) => this.#try(() => writeWhole(call, answer, at)))
    const signed = items.map(({ call }, index) => {
      const whole = written[index]
      return whole && this.#try(() => withReceipt(call, whole, sign))
    })
    for (const [index, { tell }] of items.entries()) tell(signed[index])
  }

  /** What fails here the worker does by itself, and finds out why. */
  #try<Result>(step: () => Result): Result | undefined {
    try {
      return step()
    } catch (error) {
      this.#deps.log('link_failed', { path: LINK_PATHS.egress, ...traceError(error) })
      return undefined
    }
  }
}

function withReceipt(
  call: OrderedCall,
  { body, record, claims }: UnsignedWhole,
  sign: InstantSigner,
): WrittenWhole {
  const signed = claims === undefined ? null : signWhole(call, claims, sign)
  return {
    body,
    record: { ...record, signed: signed !== null && fits(signed, body) ? signed : null },
  }
}

/** Whether answer and receipt are no more than one message holds. Otherwise the worker asks for the receipt by itself. */
function fits({ heads }: SignResponse, body: Buffer): boolean {
  const length = heads.reduce((sum, { text = '' }) => sum + text.length, body.length)
  return length <= MAX_MESSAGE_BODY_BYTES
}
