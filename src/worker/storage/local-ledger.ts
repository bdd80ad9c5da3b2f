import { BriefMap } from '../../protocol/brief-map.ts'
import type { LedgerCall, LedgerOutcome } from './ledger-calls.ts'
import type { HeldReservation, LedgerEngine } from './ledger-engine.ts'

/**
 * Lets requests use the ledger of a storage object in their own isolate. Where the ledger's memory alone can decide, this is
 * a function call instead of a call between objects. Other operations are left here for the object, and the call between
 * objects carries only a ticket number, because copying operations and outcomes would cost more than the call itself. Only
 * for runtimes that keep the object and all requests in one isolate (`STORE_IS_LOCAL`), so that the instance known here is
 * the only one.
 *
 * An object may lose its instance while requests continue (the disk refused a write). The next instance takes over the
 * reservations that the lost one admitted until then.
 */
export class LocalLedger {
  /** The known objects, by id. */
  readonly #known = new Map<string, Known>()
  readonly #left = new BriefMap<number, LeftOperations>()
  #lastTicket = 0

  /**
   * To be called when an object gets a new instance.
   * @returns the reservations that the previous instance held
   */
  replace(object: string): readonly HeldReservation[] {
    const former = this.#known.get(object)
    if (former === undefined) return []
    former.isOpen = false
    return former.engine.held()
  }

  /** Lets requests use the ledger of an object's newest instance. */
  offer(object: string, engine: LedgerEngine): void {
    this.#known.set(object, { engine, isOpen: true })
  }

  /**
   * Carries out an operation that memory alone can decide now. Never throws.
   * @returns undefined where the object must be called
   */
  atOnce(object: string, call: LedgerCall): LedgerOutcome | undefined {
    const known = this.#known.get(object)
    return known?.isOpen === true ? known.engine.atOnce(call) : undefined
  }

  /**
   * Lets an object carry out operations. They are not copied, so nobody may change them.
   * @param call calls the object, which takes the operations under this ticket; resolves once they are committed
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

  /**
   * For the object: takes operations that were handed over, to which it adds the outcomes. Each ticket can be taken once.
   */
  take(ticket: number): LeftOperations {
    const left = this.#left.take(ticket)
    if (left === undefined) throw new Error('internal error: no operations were left')
    return left
  }
}

/** Operations that were handed over to an object, and their outcomes. */
interface LeftOperations {
  readonly calls: readonly LedgerCall[]
  outcomes: readonly LedgerOutcome[] | undefined
}

interface Known {
  readonly engine: LedgerEngine
  isOpen: boolean
}
