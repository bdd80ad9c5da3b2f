import { DurableObject } from 'cloudflare:workers'
import { failedOutcome, rowsOf, type BatchOutcome } from './batch-outcome.ts'
import type { Database, Statement } from './database.ts'
import { createLanes, type Lanes } from './lanes.ts'
import { migrate } from './migrate.ts'
import { MIGRATIONS } from './migrations.ts'
import { runPostgresBatch } from './postgres-batch.ts'
import { classifyPostgresError } from './postgres-failure.ts'
import { openPostgresLane, type PostgresLane } from './postgres-lane.ts'
import { SWEEP_AFTER_WRITE_MS, SWEEP_PAUSE_MS, type Sweep } from './sweep.ts'

const CONNECTIONS = 8
const DEADLINE_MS = 10_000
const MOST_TRIES = 10
const FIRST_RETRY_MS = 5
const LONGEST_RETRY_MS = 200

interface PoolEnv {
  readonly DATABASE_URL: string
}

/**
 * The class of the Durable Object that holds this process's connections to PostgreSQL: a socket opened in a
 * stateless worker ends with its request. It needs no storage but its alarm's.
 *
 * @param sweep the maintenance its alarm runs, on every instance; rounds that meet do no harm
 * @param now the clock, ms since the epoch
 */
export function makePostgresPool(sweep: Sweep, now: () => number = Date.now) {
  return class PostgresPool extends DurableObject<PoolEnv> {
    readonly #lanes: Lanes<PostgresLane>
    #migration: Promise<void> | undefined

    constructor(ctx: DurableObjectState, env: PoolEnv) {
      super(ctx, env)
      this.#lanes = createLanes({
        open: () => openPostgresLane(env.DATABASE_URL),
        size: CONNECTIONS,
        deadlineMs: DEADLINE_MS,
      })
      void ctx.blockConcurrencyWhile(async () => {
        const alarm = await ctx.storage.getAlarm()
        if (alarm === null) await ctx.storage.setAlarm(now() + SWEEP_AFTER_WRITE_MS)
      })
    }

    /** Runs one batch. Never throws for what the server did. */
    async batch(
      customerId: string | null,
      statements: readonly Statement[],
    ): Promise<BatchOutcome> {
      try {
        await this.#migrated()
      } catch (error) {
        return failedOutcome(error, () => false)
      }
      return this.#run(customerId, statements)
    }

    /** Runs one round of maintenance; the next follows whatever became of this one. */
    override async alarm(): Promise<void> {
      let next: number | undefined
      try {
        await this.#migrated()
        next = (await sweep(this.#directory(), now())).next
      } finally {
        const latest = now() + SWEEP_AFTER_WRITE_MS
        const due = Math.max(next ?? latest, now() + SWEEP_PAUSE_MS)
        await this.ctx.storage.setAlarm(Math.min(due, latest))
      }
    }

    /** Applies the schema once for the life of this object; a failure is forgotten and tried again. */
    #migrated(): Promise<void> {
      this.#migration ??= migrate(this.#directory(), MIGRATIONS).catch((error: unknown) => {
        this.#migration = undefined
        throw error
      })
      return this.#migration
    }

    #directory(): Database {
      return { batch: async (statements) => rowsOf(await this.#run(null, statements)) }
    }

    #run(customerId: string | null, statements: readonly Statement[]): Promise<BatchOutcome> {
      return this.#lanes
        .use(({ sql }) => withRetries(() => runPostgresBatch(sql, customerId, statements)))
        .then(
          (rows) => ({ ok: true, rows }) as const,
          (error: unknown) =>
            failedOutcome(error, () => classifyPostgresError(error) === 'refused'),
        )
    }
  }
}

/** Repeats a transaction that lost to another one, with growing random pauses. */
async function withRetries<Result>(transaction: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await transaction()
    } catch (error) {
      if (attempt === MOST_TRIES || classifyPostgresError(error) !== 'retry') throw error
      const longest = Math.min(FIRST_RETRY_MS * 2 ** attempt, LONGEST_RETRY_MS)
      await new Promise((resolve) => setTimeout(resolve, Math.random() * longest))
    }
  }
}
