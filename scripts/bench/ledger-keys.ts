import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { LinkEnd } from '../../src/host/stack/link-binding.ts'
import type { LedgerKey } from '../../src/worker/storage/ledger-operations.ts'
import { ledgerStorage } from '../../src/worker/storage/ledger-storage.ts'
import { int64, sql } from '../../src/worker/storage/sql.ts'
import { LedgerConnection } from './ledger-connection.ts'

const HEAD = 'h'.repeat(5_029)
const EVIDENCE = 'e'.repeat(4_000)

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

/** The digest of the receipt head that all receipts refer to, as the receipts of one signing key do. */
export const HEAD_SHA256 = sha256(HEAD)

/** The digest of the evidence that all receipts refer to. */
export const EVIDENCE_SHA256 = sha256(EVIDENCE)

const KEPT_FOR_MS = 365 * 86_400_000

/**
 * Fills an empty ledger with `count` customers, each postpaid and with one key, and with the head and evidence that
 * their receipts refer to.
 */
export async function makeLedgerKeys(link: LinkEnd, count: number): Promise<readonly LedgerKey[]> {
  const connection = new LedgerConnection(link)
  const storage = ledgerStorage(
    {
      fetch: async (url, { body }) =>
        new Response(await connection.call(new URL(url).pathname, z.string().parse(body))),
    },
    { now: Date.now, keepAlive: () => {} },
  )
  const now = Date.now()
  const keptUntil = now + KEPT_FOR_MS
  const keys = Array.from({ length: count }, newKey)
  await storage.directory().batch([
    sql`INSERT INTO receipt_heads (sha256, head, expires_at)
      VALUES (${HEAD_SHA256}, ${HEAD}, ${int64(keptUntil)})`,
  ])
  for (const { customerId, keyPrefix, keyHash } of keys) {
    const database = storage.customer(customerId)
    await database.batch([
      sql`INSERT INTO customers (customer_id, name, plan, billing, balance_nano, created_at)
        VALUES (${customerId}, 'bench', 'standard', 'postpaid', 0, ${int64(now)})`,
      sql`INSERT INTO api_keys (customer_id, key_prefix, key_hash, name, created_at)
        VALUES (${customerId}, ${keyPrefix}, ${keyHash}, 'bench', ${int64(now)})`,
    ])
    await database.ledger?.storeEvidence?.({
      customerId,
      sha256: EVIDENCE_SHA256,
      dataB64: Buffer.from(EVIDENCE).toString('base64'),
      expiresAt: keptUntil,
    })
  }
  connection.close()
  return keys
}

/** A key whose ids and prefix have the same length as those that the router makes. */
function newKey(): LedgerKey {
  const customerId = randomUUID().replaceAll('-', '').slice(0, 28)
  const keyPrefix = `cmr_${customerId}_${randomBytes(5).toString('hex')}`
  return { customerId, keyPrefix, keyHash: randomBytes(32).toString('hex') }
}
