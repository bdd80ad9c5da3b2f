import { DurableObject } from 'cloudflare:workers'
import type { BatchOutcome } from './batch-outcome.ts'
import { EarliestAlarm } from './earliest-alarm.ts'
import { migrate } from './migrate.ts'
import { SQLITE_MIGRATIONS } from './migrations.ts'
import { unpackBatches, type PackedBatches } from './packed-batches.ts'
import { isRead } from './sql.ts'
import { durableObjectStore } from './durable-object-store.ts'
import { sqliteDatabase } from './sqlite-batches.ts'
import { ReadTurns } from './read-turns.ts'
import { SWEEP_AFTER_WRITE_MS, SWEEP_PAUSE_MS, type Sweep } from './database.ts'
import { haveChanged, type LedgerCall, type LedgerOutcome } from './ledger-calls.ts'
import type { LedgerEngine, OpenLedger } from './ledger-engine.ts'
import type { LocalLedger } from './local-ledger.ts'

/**
 * The class of the Durable Object whose SQLite database holds everything.
 *
 * @param openLedger creates its ledger
 * @param sweep the maintenance that its alarm runs
 * @param local gives requests of the same isolate access to its ledger, if the environment has `STORE_IS_LOCAL`
 * @param now the clock, ms since the epoch
 * @param afterWriteMs the latest time after a write at which a round of maintenance runs, ms
 */
export function makeStoreObject(
  openLedger: OpenLedger,
  sweep: Sweep,
  local: LocalLedger,
  now: () => number,
  afterWriteMs = SWEEP_AFTER_WRITE_MS,
) {
  return class StoreObject extends DurableObject {
    readonly #ledger: LedgerEngine
    readonly #alarm: EarliestAlarm
    readonly #reads = new ReadTurns()

    constructor(ctx: DurableObjectState, env: Cloudflare.Env) {
      super(ctx, env)
      this.#alarm = new EarliestAlarm((time) => ctx.storage.setAlarm(time))
      const store = durableObjectStore(ctx.storage)
      const later = (ms: number, work: () => Promise<void>) => {
        setTimeout(() => void this.#runDue(work), ms)
      }
      this.#ledger = openLedger(store, { later })
      const id = ctx.id.toString()
      const isLocal = 'STORE_IS_LOCAL' in env && env.STORE_IS_LOCAL === true
      const held = isLocal ? local.replace(id) : []
      void ctx.blockConcurrencyWhile(async () => {
        await migrate(sqliteDatabase(store), SQLITE_MIGRATIONS)
        await this.#ledger.open(held)
        await this.#alarm.resume(await ctx.storage.getAlarm(), isLocal ? now() : undefined)
        if (isLocal) local.offer(id, this.#ledger)
      })
    }

    /** Runs batches and commits them together. Errors of SQL are outcomes, not exceptions. */
    async batches(packed: PackedBatches): Promise<readonly BatchOutcome[]> {
      const batches = unpackBatches(packed)
      const run = () => this.#ledger.batches(batches)
      const reads = batches.every((batch) => batch.every(isRead))
      const answers = await (reads ? this.#reads.run(run) : run())
      if (answers.some(({ wrote }) => wrote)) await this.#sweepSoon()
      return answers.map(({ outcome }) => outcome)
    }

    /** Carries out ledger operations that arrived together. Their errors are outcomes, not exceptions. */
    async operations(calls: readonly LedgerCall[]): Promise<readonly LedgerOutcome[]> {
      const outcomes = await this.#ledger.operations(calls)
      if (haveChanged(outcomes)) await this.#sweepSoon()
      return outcomes
    }

    /**
     * Carries out operations that a request of this isolate has left under this ticket. Their errors are outcomes, not
     * exceptions.
     */
    async operationsLeft(ticket: number): Promise<void> {
      const left = local.take(ticket)
      left.outcomes = await this.operations(left.calls)
    }

    /** Runs one round of maintenance. If it throws, workerd repeats the alarm with back-off. */
    override async alarm(): Promise<void> {
      this.#alarm.wentOff()
      const { next } = await sweep(this.#ledger.database, now())
      if (next !== undefined) await this.#alarm.schedule(Math.max(next, now() + SWEEP_PAUSE_MS))
    }

    /**
     * Runs scheduled work of the ledger, then schedules maintenance: reservations that were made without a call to this
     * object need it, too.
     */
    async #runDue(work: () => Promise<void>): Promise<void> {
      await work()
      await this.#sweepSoon()
    }

    #sweepSoon(): Promise<void> {
      return this.#alarm.scheduleAfterWrite(now() + afterWriteMs)
    }
  }
}
