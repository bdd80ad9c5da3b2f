import { DurableObject } from 'cloudflare:workers'
import { outcomeOf, type BatchOutcome } from './batch-outcome.ts'
import type { DatabaseNetwork } from './database-socket.ts'
import { EarliestAlarm } from './earliest-alarm.ts'
import type { LedgerAnswer, LedgerEnd, LedgerFunction, LedgerItem } from './postgres-calls.ts'
import { createPostgresEngine, type PostgresEngine } from './postgres-engine.ts'
import { SWEEP_AFTER_WRITE_MS, SWEEP_PAUSE_MS, type Statement, type Sweep } from './database.ts'

/** How long a batch may take, including its wait for a connection, ms. */
const DEADLINE_MS = 10_000

interface PoolEnv {
  readonly DATABASE_URL: string
  /** Present where the database must have a certificate of the operator's authorities. */
  readonly DATABASE?: DatabaseNetwork
}

/**
 * The class of the Durable Object that holds this process's connections to PostgreSQL: a socket that a stateless worker
 * opens ends with its request. It uses its storage only for its alarm.
 * @param sweep the maintenance that its alarm runs, on every instance; concurrent rounds are harmless
 * @param deps the clock, in ms since the epoch, and random numbers in [0, 1) for pauses between retries
 */
export function makePostgresPool(
  sweep: Sweep,
  { now, random }: { readonly now: () => number; readonly random: () => number },
) {
  return class PostgresPool extends DurableObject<PoolEnv> {
    readonly #engine: PostgresEngine
    readonly #alarm: EarliestAlarm

    constructor(ctx: DurableObjectState, env: PoolEnv) {
      super(ctx, env)
      const address = { databaseUrl: env.DATABASE_URL, network: env.DATABASE }
      this.#engine = createPostgresEngine(address, {
        deadlineMs: DEADLINE_MS,
        idleMs: DEADLINE_MS,
        now,
        random,
      })
      this.#alarm = new EarliestAlarm((time) => ctx.storage.setAlarm(time))
      void ctx.blockConcurrencyWhile(async () => {
        this.#alarm.isAlready(await ctx.storage.getAlarm())
        await this.#alarm.schedule(now() + SWEEP_AFTER_WRITE_MS)
      })
    }

    /** Runs one batch. Errors of the server are returned, not thrown. */
    async batch(
      customerId: string | null,
      statements: readonly Statement[],
    ): Promise<BatchOutcome> {
      this.#sweepSoon()
      return outcomeOf(this.#engine.batch(customerId, statements))
    }

    /** Carries out operations on the ledger together; the answers are in their order. Errors are returned, not thrown. */
    async ledger(
      name: LedgerFunction,
      items: readonly LedgerItem[],
    ): Promise<readonly LedgerAnswer[]> {
      this.#sweepSoon()
      return this.#engine.ledger.together(name, items)
    }

    /** Carries out one operation whose row another transaction has locked. Errors are returned, not thrown. */
    async ledgerAlone(name: LedgerFunction, item: LedgerItem): Promise<LedgerEnd> {
      return this.#engine.ledger.alone(name, item)
    }

    /** Runs one round of maintenance, and schedules the next one even if this one fails. */
    override async alarm(): Promise<void> {
      this.#alarm.wentOff()
      let next: number | undefined
      try {
        next = (await sweep(this.#engine.directory, now())).next
      } finally {
        const latest = now() + SWEEP_AFTER_WRITE_MS
        const due = Math.max(next ?? latest, now() + SWEEP_PAUSE_MS)
        await this.#alarm.schedule(Math.min(due, latest))
      }
    }

    /**
     * Makes sure that a round is due within `SWEEP_AFTER_WRITE_MS`. The alarm is always set, but after the clock was set
     * back its time may be far in the future.
     */
    #sweepSoon(): void {
      void this.#alarm.scheduleAfterWrite(now() + SWEEP_AFTER_WRITE_MS)
    }
  }
}
