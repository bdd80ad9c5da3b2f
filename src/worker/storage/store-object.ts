import { DurableObject } from 'cloudflare:workers'
import type { BatchOutcome } from './batch-outcome.ts'
import type { Statement } from './database.ts'
import { migrate } from './migrate.ts'
import { MIGRATIONS } from './migrations.ts'
import { createSqliteBatches } from './sqlite-batches.ts'
import { SWEEP_AFTER_WRITE_MS, SWEEP_PAUSE_MS, type Sweep } from './sweep.ts'

/**
 * The class of the Durable Objects that hold one SQLite database each: one for every customer, one for the
 * directory.
 *
 * @param sweep the maintenance its alarm runs
 * @param now the clock, ms since the epoch
 * @param afterWriteMs how long after a write a round runs at the latest
 */
export function makeStoreObject(
  sweep: Sweep,
  now: () => number = Date.now,
  afterWriteMs = SWEEP_AFTER_WRITE_MS,
) {
  return class StoreObject extends DurableObject {
    readonly #batches: ReturnType<typeof createSqliteBatches>
    /** When the alarm is set to go off; infinity while none is set. */
    #alarmAt = Number.POSITIVE_INFINITY

    constructor(ctx: DurableObjectState, env: Cloudflare.Env) {
      super(ctx, env)
      this.#batches = createSqliteBatches(ctx.storage, (flush) => setTimeout(flush, 0))
      void ctx.blockConcurrencyWhile(async () => {
        await migrate(this.#batches.immediate, MIGRATIONS)
        this.#alarmAt = (await ctx.storage.getAlarm()) ?? Number.POSITIVE_INFINITY
      })
    }

    /** Runs one batch; concurrent ones are committed together. Never throws for what SQL did. */
    async batch(statements: readonly Statement[]): Promise<BatchOutcome> {
      const { outcome, wrote } = await this.#batches.grouped(statements)
      if (wrote) await this.#wakeBy(now() + afterWriteMs)
      return outcome
    }

    /** Runs one round of maintenance. workerd repeats an alarm that throws, with back-off. */
    override async alarm(): Promise<void> {
      this.#alarmAt = Number.POSITIVE_INFINITY
      const { next } = await sweep(this.#batches.immediate, now())
      if (next !== undefined) await this.#wakeBy(Math.max(next, now() + SWEEP_PAUSE_MS))
    }

    async #wakeBy(time: number): Promise<void> {
      if (this.#alarmAt <= time) return
      this.#alarmAt = time
      await this.ctx.storage.setAlarm(time)
    }
  }
}
