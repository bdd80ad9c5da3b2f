import { createHash } from 'node:crypto'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { AdminApi } from '../../src/host/stack/admin-api.ts'
import { completionOf, usageOf } from '../support/answers.ts'
import { sqliteFiles } from '../support/crash/ledger-access.ts'
import { chatAs, newCustomer, routerOf, type TestCustomer } from '../support/customer.ts'
import { startStack, temporaryDirectory, type Stack } from '../support/stack.ts'

const DAY_MS = 86_400_000

test(
  'past its retention a receipt is 410 with its digest, and its body is in no file',
  { timeout: 120_000 },
  async () => {
    const stateDir = temporaryDirectory()
    const stack = await startStack({ stateDir })
    try {
      const brief = { billing: 'postpaid', receipt_retention_days: 2 }
      const [short, usual] = [
        await newCustomer(routerOf(stack), brief),
        await newCustomer(routerOf(stack), { billing: 'postpaid' }),
      ]
      const expiring = [await makeReceipt(stack, short), await makeReceipt(stack, short)]
      const lasting = await makeReceipt(stack, usual)

      await maintainAt(stack, Date.now() + DAY_MS)
      for (const { id } of expiring) expect((await getReceipt(stack, short, id)).status).toBe(200)
      expect(await maintainAt(stack, Date.now() + 3 * DAY_MS)).toMatchObject({
        expired: 2,
        cleared: 2,
      })
      for (const { id, jws } of expiring) {
        const answer = await getReceipt(stack, short, id)
        expect(answer.status).toBe(410)
        const told = {
          status: 'expired',
          receipt_sha256: createHash('sha256').update(jws).digest('hex'),
        }
        const body = await answer.json()
        expect(body).toMatchObject({ ...told, error: { code: 'expired', ...told } })
      }
      expect((await getReceipt(stack, usual, lasting.id)).status).toBe(200)
      const { data } = await usageOf(await request(stack, short, '/v1/usage'))
      expect(data.map((row) => row.receipt_id)).toEqual(expiring.map(({ id }) => id).toReversed())

      await stack.stop()
      const bytes = checkpointedFiles(join(stateDir, 'storage'))
      expect(bytes).toContain(lasting.jws.slice(-PIECE))
      for (const { jws } of expiring) {
        const pieces = ownPieces(jws, lasting.jws)
        expect(pieces.length).toBeGreaterThan(4)
        expect(pieces.filter((piece) => bytes.includes(piece))).toEqual([])
      }
    } finally {
      await stack.stop()
      rmSync(stateDir, { recursive: true, force: true })
    }
  },
)

function request(stack: Stack, customer: TestCustomer, path: string): Promise<Response> {
  return fetch(stack.local.base_url + path, {
    headers: { authorization: `Bearer ${customer.key}` },
  })
}

function getReceipt(stack: Stack, customer: TestCustomer, id: string): Promise<Response> {
  return request(stack, customer, `/v1/receipts/${id}`)
}

async function makeReceipt(
  stack: Stack,
  customer: TestCustomer,
): Promise<{ readonly id: string; readonly jws: string }> {
  const { service } = await completionOf(
    await chatAs(routerOf(stack), customer, { model: 'glm-5', max_tokens: 100 }),
  )
  const id = service.receipt_id ?? ''
  const { receipt }: { receipt: string } = await (await getReceipt(stack, customer, id)).json()
  return { id, jws: receipt }
}

function maintainAt(stack: Stack, time: number): Promise<unknown> {
  const admin = new AdminApi(stack.local.base_url, stack.local.admin_token)
  return admin.call('POST', '/admin/maintenance', { now: new Date(time).toISOString() })
}

/** Every database file, once what is still in a WAL has been taken over. */
function checkpointedFiles(directory: string): string {
  const files = sqliteFiles(directory).map((path) => {
    const db = new DatabaseSync(path)
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()
    return readFileSync(path, 'latin1')
  })
  return files.join('')
}

const PIECE = 48

/** Pieces of a body that another one does not share: receipts of one router carry the same attestation. */
function ownPieces(jws: string, other: string): readonly string[] {
  const count = Math.floor(jws.length / PIECE)
  const pieces = Array.from({ length: count }, (_, i) => jws.slice(i * PIECE, (i + 1) * PIECE))
  return pieces.filter((piece) => !other.includes(piece))
}
