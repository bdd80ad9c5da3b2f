import { closeSync, existsSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import type { LedgerCall, LedgerOutcome } from '../worker/storage/ledger-calls.ts'
import type { AdmissionEntry } from '../worker/storage/ledger-operations.ts'

/** An admission that was answered, or the end of its request. */
type Line =
  | { readonly entry: Omit<AdmissionEntry, 'plans'>; readonly plans: AdmissionEntry['plans'] }
  | { readonly ended: string }

/**
 * The reservations that are in memory alone. The workers whose requests they belong to outlive the ledger process, so a
 * new one has to hold the same amounts. It is a file that is not forced to the disk: when the machine itself goes down,
 * these requests go, too. It is cleared each time the tables have all reservations.
 */
export class ReservationLog {
  readonly #file: number
  readonly #write: (file: number, bytes: Buffer) => number

  /** @param write as `writeSync`, which writes less than it is given where the disk is full */
  constructor(path: string, write: (file: number, bytes: Buffer) => number = writeSync) {
    this.#file = openSync(path, 'a', 0o600)
    this.#write = write
  }

  /**
   * Notes what operations did, before they are answered.
   * @throws Error when it cannot be written
   */
  note(calls: readonly LedgerCall[], outcomes: readonly LedgerOutcome[]): void {
    const plans = new Map<AdmissionEntry['plans'], string>()
    const lines = calls.flatMap((call, index) => {
      const outcome = outcomes[index]
      if (outcome?.ok !== true) return []
      if (call.kind === 'settle') return lineOfEnd(call.entry.requestId)
      if (call.kind === 'release') return lineOfEnd(call.requestId)
      if (outcome.kind !== 'admit' || outcome.facts?.admitted !== true) return []
      const { plans: given, ...entry } = call.entry
      const text = plans.get(given) ?? JSON.stringify(given)
      plans.set(given, text)
      return `{"plans":${text},"entry":${JSON.stringify(entry)}}\n`
    })
    if (lines.length === 0) return
    // What a full disk took of an earlier note must not spoil the first line of this one.
    const bytes = Buffer.from(`\n${lines.join('')}`)
    const written = this.#write(this.#file, bytes)
    if (written < bytes.length) throw new Error('the disk is full: SQLITE_FULL')
  }

  /** To be called when the tables have every reservation that was noted. */
  clear(): void {
    ftruncateSync(this.#file)
  }

  close(): void {
    closeSync(this.#file)
  }
}

/** The admissions in a log whose requests had not ended, oldest first. */
export function openAdmissions(path: string): readonly AdmissionEntry[] {
  if (!existsSync(path)) return []
  const open = new Map<string, AdmissionEntry>()
  for (const text of readFileSync(path, 'utf8').split('\n')) {
    const line = lineIn(text)
    if (line === undefined) continue
    if ('ended' in line) open.delete(line.ended)
    else open.set(line.entry.requestId, { ...line.entry, plans: line.plans })
  }
  return [...open.values()]
}

function lineOfEnd(requestId: string): string {
  return `${JSON.stringify({ ended: requestId } satisfies Line)}\n`
}

/** Undefined for the last line of a process that was killed while it wrote. */
function lineIn(text: string): Line | undefined {
  try {
    // This program wrote it, in a directory of its own.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return JSON.parse(text) as Line
  } catch {
    return undefined
  }
}
