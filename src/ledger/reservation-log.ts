import { closeSync, existsSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import { z } from 'zod'
import { amountOf } from '../worker/settle/plan-terms.ts'
import type { LedgerCall, LedgerOutcome } from '../worker/storage/ledger-calls.ts'
import type { HeldReservation } from '../worker/storage/ledger-engine.ts'

/** A reservation whose admission was answered, or the end of a request that was not settled. */
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
 * The reservations that are in memory alone. The workers whose requests they belong to outlive the ledger process, so a
 * new one has to hold the same amounts. It is a file that is not forced to the disk: when the machine itself goes down,
 * these requests go, too. It is cleared each time the tables have all reservations.
 */
export class ReservationLog {
  readonly #file: number
  readonly #write: (file: number, bytes: Buffer) => number
  /** From then on the descriptor may be another file's. */
  #isClosed = false

  /** @param write as `writeSync`, which writes less than it is given where the disk is full */
  constructor(path: string, write: (file: number, bytes: Buffer) => number = writeSync) {
    this.#file = openSync(path, 'a', 0o600)
    this.#write = write
  }

  /**
   * Notes what operations did, before they are answered.
   * @throws Error when it cannot be written, or is closed
   */
  note(calls: readonly LedgerCall[], outcomes: readonly LedgerOutcome[]): void {
    if (this.#isClosed) throw new Error('the ledger is closed')
    const lines = calls.flatMap((call, index) => lineOf(call, outcomes[index]) ?? [])
    if (lines.length === 0) return
    // What a full disk took of an earlier note must not spoil the first line of this one.
    const bytes = Buffer.from(`\n${lines.map((line) => `${JSON.stringify(line)}\n`).join('')}`)
    const written = this.#write(this.#file, bytes)
    if (written < bytes.length) throw new Error('the disk is full: SQLITE_FULL')
  }

  /** To be called when the tables have every reservation that was noted. A fold may end after the log is closed: then it stays as it is. */
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
    // What is settled, the journal or the tables have, so it is not held again (`take-over.ts`).
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
 * Undefined for the last line of a process that was killed while it wrote, and for what an older release wrote, whose
 * requests have ended with its workers.
 */
function lineIn(text: string): z.output<typeof lineSchema> | undefined {
  try {
    return lineSchema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
