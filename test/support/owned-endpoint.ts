import { z } from 'zod'
import { sha256Hex } from '../../src/protocol/digest.ts'
import type { Context, Handler } from '../../src/worker/context.ts'
import { errorReply } from '../../src/worker/http/reply.ts'
import type { Keyring } from '../../src/worker/auth/keyring.ts'
import { openKeyring } from './keyring.ts'
import type { PresentedKey } from '../../src/worker/auth/api-key.ts'
import { toApiError } from '../../src/worker/http/to-api-error.ts'
import { pause } from '../../src/worker/routing/budget.ts'
import { RequestTurns } from '../../src/worker/limits/request-turns.ts'
import { openSharedLimits, type SharedLimits } from '../../src/worker/limits/shared-limits.ts'
import type { Database, Statement } from '../../src/worker/storage/database.ts'
import { sql } from '../../src/worker/storage/sql.ts'
import { addCustomer, NOW, type NewCustomer } from './ledger.ts'
import { openSqlite, sharedStorage, type SqliteDatabase } from './sqlite-database.ts'

/** A customer with a key that really works. */
export interface Owner extends PresentedKey {
  readonly apiKey: string
}

/** The parts of the worker that endpoints of a customer's own data use, on a real SQLite. */
export interface OwnedEndpoints {
  readonly db: SqliteDatabase
  readonly clock: { now: number }
  readonly shared: SharedLimits
  /** Statements that reached the storage since the last look. */
  readonly statements: Statement[]
  /** What the storage does instead of its work, if anything. */
  readonly fault: { of: ((statements: readonly Statement[]) => Error | undefined) | undefined }
  addOwner(customer?: Omit<NewCustomer, 'id'>): Promise<Owner>
  /** The answer of an endpoint as a client sees it, errors included. */
  ask(handler: Handler, path: string, apiKey?: string, params?: Params): Promise<Answer>
  /** The answer before anything of its body is read. */
  open(handler: Handler, path: string, headers: HeadersInit, params?: Params): Promise<Response>
}

type Params = Readonly<Record<string, string>>

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: Readonly<Record<string, unknown>>
}

export function ownedEndpoints(): OwnedEndpoints {
  const db = openSqlite()
  const statements: Statement[] = []
  const fault: OwnedEndpoints['fault'] = { of: undefined }
  const watched: Database = {
    batch: async (batch) => {
      statements.push(...batch)
      const error = fault.of?.(batch)
      if (error) throw error
      return db.batch(batch)
    },
  }
  const storage = sharedStorage(watched)
  const keyring = openKeyring(storage)
  const clock = { now: NOW }
  const stays = new AbortController().signal
  const now = () => clock.now
  const shared = openSharedLimits(now)
  const inTurn: Context['inTurn'] = (cost, work) =>
    new RequestTurns(shared.turns, '', { now, pause }).begin({ cost, client: stays }, work)
  const waitUntil = (work: Promise<unknown>) => void work
  const parts: Partial<Context> = { storage, keyring, shared, now, inTurn, waitUntil }
  // The endpoints under test take no other part of a context.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const context = parts as Context
  const open: OwnedEndpoints['open'] = (handler, path, headers, params = {}) => {
    const request = new Request(`https://router.example${path}`, { headers })
    return handler(request, context, params).catch((error: unknown) =>
      errorReply(toApiError(error)),
    )
  }
  return {
    db,
    clock,
    shared,
    statements,
    fault,
    open,
    addOwner: (customer = {}) => addOwner(db, keyring, customer),
    ask: async (handler, path, apiKey, params = {}) => {
      const headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
      const response = await open(handler, path, headers, params)
      const text = await response.text()
      const json = z.record(z.string(), z.unknown()).parse(JSON.parse(text))
      return { status: response.status, headers: response.headers, text, json }
    },
  }
}

async function addOwner(
  db: Database,
  keyring: Keyring,
  customer: Omit<NewCustomer, 'id'>,
): Promise<Owner> {
  const customerId = await keyring.newCustomerId()
  await addCustomer(db, { ...customer, id: customerId })
  const { key, prefix } = keyring.newApiKey(customerId)
  const keyHash = await sha256Hex(key)
  await db.batch([
    sql`INSERT INTO api_keys (customer_id, key_prefix, key_hash, name, created_at)
      VALUES (${customerId}, ${prefix}, ${keyHash}, 'laptop', ${NOW})`,
  ])
  return { customerId, keyPrefix: prefix, keyHash, apiKey: key }
}
