import { z } from 'zod'
import { formatNano } from '../../protocol/money.ts'
import type { AdminOperation } from '../auth/admin-token.ts'
import { ApiError } from '../http/errors.ts'
import { json } from '../http/reply.ts'
import type { Database, Row } from '../storage/database.ts'
import {
  bigintOf,
  flagOf,
  numberOf,
  optionalNumberOf,
  optionalTextOf,
  textOf,
} from '../storage/row.ts'
import { sql } from '../storage/sql.ts'
import { asAdmin } from './as-admin.ts'

/** One request from its key to its receipt: ids and numbers only, nothing of the prompt or the answer. */

const settledSchema = z.object({
  at: z.iso.datetime(),
  route: z.string(),
  provider: z.string(),
  region: z.string().nullable(),
  modality: z.enum(['chat', 'transcription', 'embedding']),
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  audio_seconds: z.number().nullable(),
  cost_eur: z.string(),
  discount_applied_pct: z.int(),
  failover: z.boolean(),
  usage_capped: z.boolean(),
})

const receiptSchema = z.object({
  id: z.string(),
  sha256: z.string(),
  kid: z.string(),
  issued_at: z.iso.datetime(),
  expires_at: z.iso.datetime(),
  stored: z.boolean().describe('False once its body is past its retention.'),
  evidence: z
    .array(z.object({ sha256: z.string(), stored: z.boolean() }))
    .describe('What it refers to by digest.'),
  envelopes: z
    .array(z.object({ sha256: z.string(), first_seen_at: z.iso.datetime() }))
    .describe('The evidence of the router that vouches for its key, newest first.'),
})

const requestSchema = z.object({
  request_id: z.string(),
  state: z.enum(['open', 'settled', 'quarantined']),
  customer_id: z.string(),
  key_prefix: z.string().nullable().describe('Null for a customer that was erased.'),
  reserved: z
    .object({ amount_eur: z.string(), at: z.iso.datetime(), expires_at: z.iso.datetime() })
    .nullable()
    .describe('Reserved while the request is in progress.'),
  settled: settledSchema.nullable(),
  receipt: receiptSchema.nullable(),
})

type RequestView = z.output<typeof requestSchema>

export const REQUEST_OPERATION: AdminOperation = {
  summary: 'Follow one request from its key to its receipt',
  tag: 'Admin',
  scope: 'read',
  path: { request_id: 'The `x-request-id` of its answer.' },
  answer: { 'application/json': { name: 'FollowedRequest', schema: requestSchema } },
  errors: ['not_found'],
}

/** GET /admin/requests/{request_id} */
export const showRequest = asAdmin(async (_request, { storage }, { request_id: id = '' }) => {
  const found = await followRequest(storage.directory(), id)
  if (found === undefined) throw new ApiError('not_found', 'The ledger has no such request.')
  return json(found)
})

/** What the storage holds about a request; undefined where it holds nothing. */
export async function followRequest(db: Database, id: string): Promise<RequestView | undefined> {
  const [[row], [reservation], [quarantined]] = await readRows(db, id)
  const known = row ?? reservation ?? quarantined
  if (known === undefined) return undefined
  const customerId = textOf(known, 'customer_id')
  const receiptId = row === undefined ? null : optionalTextOf(row, 'receipt_id')
  const unsettled = quarantined === undefined ? 'open' : 'quarantined'
  return {
    request_id: id,
    state: row === undefined ? unsettled : 'settled',
    customer_id: customerId,
    key_prefix: keyPrefixOf(row ?? reservation),
    reserved: reservation === undefined ? null : reservedOf(reservation),
    settled: row === undefined ? null : settledOf(row),
    receipt: receiptId === null ? null : await receiptOf(db, customerId, receiptId),
  }
}

async function readRows(db: Database, id: string): Promise<readonly [Row[], Row[], Row[]]> {
  const [usage = [], open = [], quarantined = []] = await db.batch([
    sql`SELECT customer_id, key_prefix, model, modality, provider, region, prompt_tokens,
        completion_tokens, audio_seconds, CAST(cost_nano AS TEXT) AS cost_nano, discount_pct,
        failover, capped, receipt_id, created_at
      FROM usage WHERE id = ${id}`,
    sql`SELECT customer_id, key_prefix, CAST(amount_nano AS TEXT) AS amount_nano, created_at,
        expires_at
      FROM reservations WHERE request_id = ${id}`,
    sql`SELECT customer_id FROM quarantined_settlements WHERE request_id = ${id}`,
  ])
  return [[...usage], [...open], [...quarantined]]
}

function keyPrefixOf(row: Row | undefined): string | null {
  const prefix = row === undefined ? '' : textOf(row, 'key_prefix')
  return prefix === '' ? null : prefix
}

function reservedOf(row: Row): RequestView['reserved'] {
  return {
    amount_eur: formatNano(bigintOf(row, 'amount_nano')),
    at: timeOf(row, 'created_at'),
    expires_at: timeOf(row, 'expires_at'),
  }
}

function settledOf(row: Row): z.output<typeof settledSchema> {
  return {
    at: timeOf(row, 'created_at'),
    route: textOf(row, 'model'),
    provider: textOf(row, 'provider'),
    region: optionalTextOf(row, 'region'),
    modality: settledSchema.shape.modality.parse(row['modality']),
    prompt_tokens: numberOf(row, 'prompt_tokens'),
    completion_tokens: numberOf(row, 'completion_tokens'),
    audio_seconds: optionalNumberOf(row, 'audio_seconds'),
    cost_eur: formatNano(bigintOf(row, 'cost_nano')),
    discount_applied_pct: numberOf(row, 'discount_pct'),
    failover: flagOf(row, 'failover'),
    usage_capped: flagOf(row, 'capped'),
  }
}

async function receiptOf(
  db: Database,
  customerId: string,
  receiptId: string,
): Promise<z.output<typeof receiptSchema> | null> {
  const [rows = [], evidence = [], envelopes = []] = await db.batch([
    sql`SELECT sha256, kid, evidence_refs, body_state, created_at, expires_at FROM receipts
      WHERE customer_id = ${customerId} AND receipt_id = ${receiptId}`,
    sql`SELECT sha256 FROM evidence WHERE customer_id = ${customerId}`,
    sql`SELECT envelope_sha256, created_at FROM signing_keys
      WHERE kid = (SELECT kid FROM receipts
        WHERE customer_id = ${customerId} AND receipt_id = ${receiptId})
      ORDER BY created_at DESC LIMIT 20`,
  ])
  const [row] = rows
  if (row === undefined) return null
  const own = new Set(evidence.map((one) => textOf(one, 'sha256')))
  const served = new Set(envelopes.map((one) => textOf(one, 'envelope_sha256')))
  const references = z.array(z.string()).parse(JSON.parse(textOf(row, 'evidence_refs')))
  return {
    id: receiptId,
    sha256: textOf(row, 'sha256'),
    kid: textOf(row, 'kid'),
    issued_at: timeOf(row, 'created_at'),
    expires_at: timeOf(row, 'expires_at'),
    stored: numberOf(row, 'body_state') === 0,
    evidence: references.map((sha256) => ({
      sha256,
      stored: own.has(sha256) || served.has(sha256),
    })),
    envelopes: envelopes.map((one) => ({
      sha256: textOf(one, 'envelope_sha256'),
      first_seen_at: timeOf(one, 'created_at'),
    })),
  }
}

const timeOf = (row: Row, column: string) => new Date(numberOf(row, column)).toISOString()
