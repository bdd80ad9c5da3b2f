import { enterDeps, type Context, type Handler } from '../context.ts'
import type { PresentedKey } from '../auth/api-key.ts'
import { readApiKey, readAsCaller } from '../auth/authenticate.ts'
import { ApiError } from '../http/errors.ts'
import { json } from '../http/reply.ts'
import type { Database } from '../storage/database.ts'
import { textOf } from '../storage/row.ts'
import { list, sql } from '../storage/sql.ts'
import { receiptOf, receiptQuery, type LiveReceipt } from './find.ts'

/** `GET /v1/receipts/{id}`: the signed receipt, to the customer that owns it (see docs/api.md). */
export const getReceipt: Handler = (request, context, params) =>
  withFairRead(request, context, async (key) => {
    const receipt = await ownReceipt(key, context, params['id'] ?? '')
    return json({ id: receipt.id, receipt: receipt.jws })
  })

/**
 * `GET /v1/receipts/{id}/evidence`: the evidence that the receipt names by digest, for as long as the receipt is
 * kept: `{"evidence": [{"sha256", "data_b64"}]}` in the receipt's order.
 */
export const getReceiptEvidence: Handler = (request, context, params) =>
  withFairRead(request, context, async (key) => {
    const { evidenceRefs } = await ownReceipt(key, context, params['id'] ?? '')
    const ledger = context.storage.customer(key.customerId)
    const stored = await readEvidence(ledger, key.customerId, evidenceRefs)
    const evidence = evidenceRefs.flatMap((sha256) => {
      const dataB64 = stored.get(sha256)
      return dataB64 === undefined ? [] : [{ sha256, data_b64: dataB64 }]
    })
    return json({ evidence })
  })

/** Runs the reads of one request within the customer's share of concurrent reads. */
async function withFairRead(
  request: Request,
  context: Context,
  work: (key: PresentedKey) => Promise<Response>,
): Promise<Response> {
  const key = await readApiKey(request, context)
  return context.shared.reads.during(key.customerId, 1, enterDeps(context), () =>
    context.inTurn(1, () => work(key)),
  )
}

async function ownReceipt(key: PresentedKey, context: Context, id: string): Promise<LiveReceipt> {
  const query = receiptQuery(key.customerId, id, context.now())
  const { rows } = await readAsCaller(key, context, [query])
  if (id === '') throw new ApiError('missing_field', 'The receipt id is missing.', { param: 'id' })
  return receiptOf(rows[0]?.[0])
}

/** Base64 of each stored piece of evidence, by its digest. */
async function readEvidence(
  ledger: Database,
  customerId: string,
  refs: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (refs.length === 0) return new Map()
  const [rows = []] = await ledger.batch([
    sql`SELECT sha256, data_b64 FROM evidence
      WHERE customer_id = ${customerId} AND sha256 IN ${list(refs)}`,
  ])
  return new Map(rows.map((row) => [textOf(row, 'sha256'), textOf(row, 'data_b64')]))
}
