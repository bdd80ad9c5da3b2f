import { DurableObject, waitUntil } from 'cloudflare:workers'
import { z } from 'zod'
import { openEmbeddedLedger } from '../../../src/worker/embedded/embedded-ledger.ts'
import { findKey } from '../../../src/worker/auth/authenticate.ts'
import { storeEvidence } from '../../../src/worker/settle/ledger.ts'
import { ledgerOf } from '../../../src/worker/settle/sql-ledger.ts'
import { StatementRefused } from '../../../src/worker/storage/batch-outcome.ts'
import {
  StorageUnavailable,
  type Database,
  type Storage,
} from '../../../src/worker/storage/database.ts'
import { carryOut, type LedgerCall } from '../../../src/worker/storage/ledger-calls.ts'
import { openStorage, type StorageEnv } from '../../../src/worker/storage/open.ts'
import { LocalLedger } from '../../../src/worker/storage/local-ledger.ts'
import { makePostgresPool } from '../../../src/worker/storage/postgres-pool.ts'
import { makeStoreObject } from '../../../src/worker/storage/store-object.ts'
import { SWEEP_AFTER_WRITE_MS } from '../../../src/worker/storage/database.ts'

/** A worker that runs batches sent to it over HTTP, so that a test in Node can drive each real engine. */

const ROUNDS = 2

/** A sweep that leaves a trace of each round, and asks for another until there were two. */
async function sweep(db: Database, now: number): Promise<{ next: number | undefined }> {
  const count = "SELECT COUNT(*) AS n FROM secrets WHERE name LIKE 'swept-%'"
  const [rows = []] = await db.batch([{ sql: count, params: [] }])
  const round = Number(rows[0]?.['n'] ?? 0) + 1
  if (round > ROUNDS) return { next: undefined }
  const insert =
    'INSERT INTO secrets (name, value, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING'
  await db.batch([{ sql: insert, params: [`swept-${round}`, 'x', now] }])
  return { next: round < ROUNDS ? now : undefined }
}

/** A clock so slow that the pool's next sweep comes due 300 ms from now. */
const now = () => Date.now() - SWEEP_AFTER_WRITE_MS + 300

const localLedger = new LocalLedger()

const Store = makeStoreObject(openEmbeddedLedger, sweep, localLedger, Date.now, 300)

export class StoreObject extends Store {
  /** Ends the instance, as the runtime does when the disk has refused a write. */
  breakOff(): void {
    this.ctx.abort('broken off by a test')
  }

  /** Has the next commit fail of what is committed with an answer. */
  failCommit(): void {
    const { storage } = this.ctx
    storage.sql.exec('CREATE TABLE IF NOT EXISTS parents (id INTEGER PRIMARY KEY)')
    storage.sql.exec(
      'CREATE TABLE IF NOT EXISTS children (parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)',
    )
    storage.transactionSync = (work) => {
      Reflect.deleteProperty(storage, 'transactionSync')
      const result = storage.transactionSync(work)
      // SQLite checks this when it commits.
      storage.sql.exec('INSERT INTO children VALUES (1)')
      return result
    }
  }

  /** Refuses the next attempt to set the alarm, as a full disk does. */
  refuseAlarm(): void {
    const { storage } = this.ctx
    storage.setAlarm = () => {
      Reflect.deleteProperty(storage, 'setAlarm')
      return Promise.reject(new Error('the disk is full'))
    }
  }
}
const Pool = makePostgresPool(sweep, { now, random: Math.random })

/** The runtime's configuration names both; nothing is streamed here. */
export class ChunkObject extends DurableObject {}
export const pipes = {}

export class PostgresPool extends Pool {
  /** Leaves the alarm as a clock leaves it that was ahead. */
  async postponeAlarm(byMs: number): Promise<void> {
    await this.ctx.storage.setAlarm(Date.now() + byMs)
  }
}

interface TestEnv extends StorageEnv {
  readonly STORE: DurableObjectNamespace<StoreObject>
  readonly POSTGRES: DurableObjectNamespace<PostgresPool>
}

const askSchema = z.object({
  /** Separate names stand for separate isolates; that of `two` does not have the storage object in it. */
  instance: z.string(),
  customer: z.string().nullable(),
  statements: z
    .array(
      z.object({
        sql: z.string(),
        params: z.array(z.union([z.string(), z.number(), z.null()])),
      }),
    )
    .optional(),
  /** An operation on the ledger. */
  call: z.custom<LedgerCall>((value) => typeof value === 'object').optional(),
  /** Whether the instance of the storage object is to end. */
  breakOff: z.boolean().optional(),
  /** Whether its next commit fails of what is committed with an answer. */
  failCommit: z.boolean().optional(),
  /** Whether it refuses the next attempt to set its alarm. */
  refuseAlarm: z.boolean().optional(),
  /** By how much the alarm of the pool is to go off late. */
  postponeAlarmMs: z.number().optional(),
})

function createWorker() {
  const opened = new Map<string, Storage>()

  async function run(ask: z.output<typeof askSchema>, env: TestEnv): Promise<unknown> {
    if (ask.breakOff === true) {
      const object = env.STORE.get(env.STORE.idFromName('ledger'))
      await object.breakOff().catch(() => {})
      return {}
    }
    if (ask.failCommit === true) {
      await env.STORE.get(env.STORE.idFromName('ledger')).failCommit()
      return {}
    }
    if (ask.refuseAlarm === true) {
      await env.STORE.get(env.STORE.idFromName('ledger')).refuseAlarm()
      return {}
    }
    if (ask.postponeAlarmMs !== undefined) {
      await env.POSTGRES.get(env.POSTGRES.idFromName('pool')).postponeAlarm(ask.postponeAlarmMs)
      return {}
    }
    const storage =
      opened.get(ask.instance) ??
      openStorage(env, {
        now: Date.now,
        keepAlive: waitUntil,
        localLedger: ask.instance === 'two' ? undefined : localLedger,
      })
    opened.set(ask.instance, storage)
    const db = ask.customer === null ? storage.directory() : storage.customer(ask.customer)
    if (ask.call?.kind === 'find') {
      const facts = (await findKey(db, ask.call.key)) ?? null
      return { outcome: { ok: true, kind: 'find', facts } }
    }
    if (ask.call?.kind === 'evidence') {
      const { expiresAt: expiresAtMs, ...evidence } = ask.call.evidence
      await storeEvidence(db, { ...evidence, expiresAtMs })
      return { outcome: { ok: true, kind: 'evidence' } }
    }
    if (ask.call !== undefined) return { outcome: await carryOut(ledgerOf(db), ask.call) }
    return { rows: await db.batch(ask.statements ?? []) }
  }

  return {
    async fetch(request: Request, env: TestEnv): Promise<Response> {
      try {
        return Response.json(await run(askSchema.parse(await request.json()), env))
      } catch (error) {
        return Response.json({ error: nameOf(error), message: String(error) })
      }
    },
  }
}

function nameOf(error: unknown): string {
  if (error instanceof StorageUnavailable) return 'StorageUnavailable'
  return error instanceof StatementRefused ? 'StatementRefused' : 'Error'
}

// oxlint-disable-next-line import/no-default-export -- workerd takes a worker from its default export
export default createWorker()
