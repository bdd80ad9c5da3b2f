import { traceError } from '../../protocol/error-trace.ts'
import { MAX_MESSAGE_BODY_BYTES, SMALL_BODY_BYTES } from '../../protocol/link-messages.ts'
import { LINK_PATHS, type SignResponse } from '../../protocol/link.ts'
import type {
  WholeAnswerReceiver,
  WholeAnswerCall,
  WriteWholeAnswer,
  WrittenWholeAnswer,
} from '../egress/whole-answer-call.ts'
import type { Log } from '../log.ts'
import type { InstantSigner } from '../sign/receipt-signer.ts'
import {
  signWholeAnswer,
  writeWholeAnswer,
  type UnsignedWholeAnswer,
} from './write-whole-answer.ts'

export interface WholeAnswersDeps {
  readonly sign: InstantSigner
  /** Ms. */
  readonly now: () => number
  readonly log: Log
}

interface Item {
  readonly call: WholeAnswerCall
  readonly answer: Buffer
  readonly awaits: WholeAnswerReceiver
}

/**
 * How much is written in one turn of the event loop: at most this many answers, and at most this many bytes of answers
 * or a single larger one. Other work of the thread runs between two turns.
 */
const MOST_TOGETHER = 16
const MOST_BYTES_TOGETHER = SMALL_BODY_BYTES

/** Maximum length of a receipt's head in a message, characters; a tenth of that is usual. */
const MAX_HEAD_CHARS = MAX_MESSAGE_BODY_BYTES / 2

/**
 * Writes and signs the complete answers that workers have requested. Answers that arrived in one turn of the event loop
 * are all written first and then all signed: work between two signatures makes the second one take nearly twice as long
 * (docs/performance-findings.md, "Whole answers").
 */
export class WholeAnswers {
  readonly #deps: WholeAnswersDeps
  readonly #items: Item[] = []

  constructor(deps: WholeAnswersDeps) {
    this.#deps = deps
  }

  readonly add: WriteWholeAnswer = (call, answer, awaits) => {
    this.#items.push({ call, answer, awaits })
    if (this.#items.length === 1) this.#finishSoon()
  }

  #finishSoon(): void {
    setImmediate(() => {
      const items = this.#items.splice(0, countTogether(this.#items))
      this.#finish(items.filter(({ awaits }) => !awaits.hasDisconnected()))
      if (this.#items.length > 0) this.#finishSoon()
    })
  }

  #finish(items: readonly Item[]): void {
    const { sign, now } = this.#deps
    const at = now()
    const written = items.map(({ call, answer }) =>
      this.#try(() => writeWholeAnswer(call, answer, at)),
    )
    const signed = items.map(({ call }, index) => {
      const whole = written[index]
      return whole && this.#try(() => withReceipt(call, whole, sign))
    })
    for (const [index, { awaits }] of items.entries()) this.#try(() => awaits.tell(signed[index]))
  }

  /** Runs a step. If it fails here, the worker does it itself, and reports the reason. */
  #try<Result>(step: () => Result): Result | undefined {
    try {
      return step()
    } catch (error) {
      this.#deps.log('link_failed', { path: LINK_PATHS.egress, ...traceError(error) })
      return undefined
    }
  }
}

/** How many of the first items are written in one turn. */
function countTogether(items: readonly Item[]): number {
  let bytes = 0
  const end = items.findIndex(({ answer }, index) => {
    bytes += answer.length
    return index === MOST_TOGETHER || (index > 0 && bytes > MOST_BYTES_TOGETHER)
  })
  return end === -1 ? items.length : end
}

function withReceipt(
  call: WholeAnswerCall,
  { body, record, claims }: UnsignedWholeAnswer,
  sign: InstantSigner,
): WrittenWholeAnswer {
  const signed = claims === undefined ? null : signWholeAnswer(call, claims, sign)
  return { body, record: { ...record, signed: signed !== null && fits(signed) ? signed : null } }
}

/** Whether a receipt fits into a message beside a small body. Otherwise the worker requests it itself. */
function fits({ heads }: SignResponse): boolean {
  return heads.every(({ text = '' }) => text.length <= MAX_HEAD_CHARS)
}
