import type { LedgerCall, LedgerOutcome } from './ledger-calls.ts'
import type { HeldReservation, LedgerEngine } from './ledger-engine.ts'

/**
 * The way from a request to the ledger of a storage object in its own isolate, where the ledger's memory alone decides: a
 * function call instead of a call between objects. Only for runtimes that keep the object and all requests in one isolate
 * (`STORE_IS_LOCAL`), so that the instance known here is the only one there is.
 *
 * An object may lose its instance while requests go on (the disk refused a write). What the lost one admits until the next is
 * made is held by the next one, too.
 */
export class LocalLedger {
  /** By the object's id. */
  readonly #known = new Map<string, Known>()

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
}

interface Known {
  readonly engine: LedgerEngine
  isOpen: boolean
}
