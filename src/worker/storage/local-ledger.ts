import { BriefMap } from '../../protocol/brief-map.ts'
import type { LedgerCall, LedgerOutcome } from './ledger-calls.ts'
import type { HeldReservation, LedgerEngine } from './ledger-engine.ts'

/**
 * The way from a request to the ledger of a storage object in its own isolate, where the ledger's memory alone decides: a
 * function call instead of a call between objects. What needs the object is left here for it, so that the call carries a number:
 * copying the operations and their outcomes would cost more than the call itself. Only for runtimes that keep the object and all
 * requests in one isolate (`STORE_IS_LOCAL`), so that the instance known here is the only one there is.
 *
 * An object may lose its instance while requests go on (the disk refused a write). What the lost one admits until the next is
 * made is held by the next one, too.
 */
export class LocalLedger {
  /** By the object's id. */
  readonly #known = new Map<string, Known>()
  readonly #left = new BriefMap<number, LeftOperations>()
  #lastTicket = 0

  /** Says that an object gets a new instance; returns what the one before it held. */
  replace(object: string): readonly HeldReservation[] {
    const former = this.#known.get(object)
    if (former === undefined) return []
    former.isOpen = false
    return former.engine.held()
  }

  /** Lets requests use an object's ledger, from its instance that was opened last. */
  offer(object: string, engine: LedgerEngine): void {
    this.#known.set(object, { engine, isOpen: true })
  }

  /** Carries out an operation that memory alone can decide now. Undefined: the object must be called. Never throws. */
  atOnce(object: string, call: LedgerCall): LedgerOutcome | undefined {
    const known = this.#known.get(object)
    return known?.isOpen === true ? known.engine.atOnce(call) : undefined
  }

  /**
   * Has an object carry out operations. They are not copied, so nobody may change them.
   * @param call calls the object, which takes what the ticket stands for; resolves once that is committed
   * @throws what `call` throws
   */
  async handOver(
    calls: readonly LedgerCall[],
    call: (ticket: number) => Promise<void>,
  ): Promise<readonly LedgerOutcome[]> {
    const ticket = (this.#lastTicket += 1)
    const left: LeftOperations = { calls, outcomes: undefined }
    this.#left.add(ticket, left)
    try {
      await call(ticket)
    } finally {
      this.#left.take(ticket)
    }
    if (left.outcomes === undefined) throw new Error('internal error: an object took no operations')
    return left.outcomes
  }

  /** For the object: takes operations that were handed over, whose outcomes it adds. Each ticket is taken once. */
  take(ticket: number): LeftOperations {
    const left = this.#left.take(ticket)
    if (left === undefined) throw new Error('internal error: no operations were left')
    return left
  }
}

/** Operations that were handed over to an object, and what became of them. */
interface LeftOperations {
  readonly calls: readonly LedgerCall[]
  outcomes: readonly LedgerOutcome[] | undefined
}

interface Known {
  readonly engine: LedgerEngine
  isOpen: boolean
}
