import { closeSync, existsSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import { z } from 'zod'
import { amountOf } from '../worker/settle/plan-terms.ts'
import type { LedgerCall, LedgerOutcome } from '../worker/storage/ledger-calls.ts'
import type { HeldReservation } from '../worker/storage/ledger-engine.ts'

/**
 * One line of the log: a reservation whose admission was confirmed, or the id of a request that ended without a settlement.
 */
const lineSchema = z.union([
  z.strictObject({
    requestId: z.string(),
    customerId: z.string(),
    keyPrefix: z.string(),
    amount: z
      .string()
      .regex(/^[0-9]+$/)
      .transform(BigInt),
    createdAt: z.number(),
    expiresAt: z.number(),
  }),
  z.strictObject({ ended: z.string() }),
])

type Line = z.input<typeof lineSchema>

/**
 * A log of the reservations that only the memory holds. Workers outlive the ledger process, so a new process must hold the
 * same amounts for their requests. The file is not flushed to the disk: when the machine itself goes down, these requests
 * end, too. The log is cleared each time the tables have all reservations.
 */
export class ReservationLog {
  readonly #file: number
  readonly #write: (file: number, bytes: Buffer) => number
  /** After closing, the descriptor may belong to another file. */
  #isClosed = false

  /** @param write like `writeSync`, which writes only a part of the bytes where the disk is full */
  constructor(path: string, write: (file: number, bytes: Buffer) => number = writeSync) {
    this.#file = openSync(path, 'a', 0o600)
    this.#write = write
  }

  /**
   * Records what operations did, before they are answered.
   * @throws Error when it cannot be written, or is closed
   */
  note(calls: readonly LedgerCall[], outcomes: readonly LedgerOutcome[]): void {
    if (this.#isClosed) throw new Error('the ledger is closed')
    const lines = calls.flatMap((call, index) => lineOf(call, outcomes[index]) ?? [])
    if (lines.length === 0) return
    // A full disk may have cut off the last line of an earlier note: the newline keeps it apart from this one.
    const bytes = Buffer.from(`\n${lines.map((line) => `${JSON.stringify(line)}\n`).join('')}`)
    const written = this.#write(this.#file, bytes)
    if (written < bytes.length) throw new Error('the disk is full: SQLITE_FULL')
  }

  /**
   * To be called when the tables have every reservation that was noted. Does nothing after `close`, which may come during a
   * fold.
   */
  clear(): void {
    if (!this.#isClosed) ftruncateSync(this.#file)
  }

  close(): void {
    this.#isClosed = true
    closeSync(this.#file)
  }
}

/** The reservations in a log whose requests were not released, oldest first. Some of these requests may be settled. */
export function openReservations(path: string): readonly HeldReservation[] {
  if (!existsSync(path)) return []
  const open = new Map<string, HeldReservation>()
  for (const text of readFileSync(path, 'utf8').split('\n')) {
    const line = lineIn(text)
    if (line === undefined) continue
    if ('ended' in line) open.delete(line.ended)
    else open.set(line.requestId, line)
  }
  return [...open.values()]
}

function lineOf(call: LedgerCall, outcome: LedgerOutcome | undefined): Line | undefined {
  if (outcome?.ok !== true || call.kind === 'find' || call.kind === 'evidence') return undefined
  if (call.kind === 'release') return { ended: call.requestId }
  if (call.kind === 'settle') {
    // The journal or the tables have the settlement, so the reservation is not restored (`take-over.ts`).
    const isSettled = outcome.kind === 'settle' && outcome.result.outcome === 'settled'
    return isSettled ? undefined : { ended: call.entry.requestId }
  }
  if (outcome.kind !== 'admit' || outcome.facts?.admitted !== true) return undefined
  const { requestId, key, now: createdAt, expiresAt } = call.entry
  const amount = amountOf(call.entry, outcome.facts)
  const { customerId, keyPrefix } = key
  return { requestId, customerId, keyPrefix, amount, createdAt, expiresAt }
}

/**
 * Undefined for a line that a killed process wrote in part, and for lines of an older release, whose requests ended with its
 * workers.
 */
function lineIn(text: string): z.output<typeof lineSchema> | undefined {
  try {
    return lineSchema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
