import { beforeEach, describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import { getReceipt, getReceiptEvidence } from '../../../src/worker/receipts/handler.ts'
import { commitSettlement, storeEvidence } from '../../../src/worker/settle/ledger.ts'
import { sweep, sweepAll } from '../../../src/worker/settle/sweep.ts'
import { StorageUnavailable } from '../../../src/worker/storage/database.ts'
import { NOW, receiptOf, settlementOf } from '../../support/ledger.ts'
import { ownedEndpoints, type OwnedEndpoints, type Owner } from '../../support/owned-endpoint.ts'

const ID = '0b6c1f3a-53a4-4a53-9f55-6d1f4cf0a111'
const OTHER_ID = '5d0e7f0c-1f3a-4b53-8f55-6d1f4cf0a222'
const EVIDENCE = 'e'.repeat(64)
const EXPIRES = NOW + 14 * 86_400_000
/** Evidence is kept to the end of the hour. */
const HOUR_MS = 3_600_000

let endpoints: OwnedEndpoints
let owner: Owner
let jws: string
let sha256: string

const ask = (id: string, handler = getReceipt, apiKey: string | undefined = owner.apiKey) =>
  endpoints.ask(handler, `/v1/receipts/${encodeURIComponent(id)}`, apiKey, { id })

beforeEach(async () => {
  endpoints = ownedEndpoints()
  owner = await endpoints.addOwner({ billing: 'postpaid' })
  jws = receiptOf(ID).jws
  sha256 = await sha256Hex(jws)
  const receipt = receiptOf(ID, { sha256, expiresAtMs: EXPIRES, evidenceRefs: [EVIDENCE] })
  await commitSettlement(endpoints.db, settlementOf(owner, 'r1', { receipt }))
})

const gone = () => ({
  status: 'expired',
  receipt_sha256: sha256,
  error: {
    message: 'The receipt is past its retention; only its digest is kept.',
    type: 'invalid_request_error',
    code: 'expired',
    param: null,
    status: 'expired',
    receipt_sha256: sha256,
  },
})

const store = () =>
  storeEvidence(endpoints.db, {
    customerId: owner.customerId,
    sha256: EVIDENCE,
    dataB64: 'ZXZpZGVuY2U=',
    expiresAtMs: EXPIRES,
  })

describe('GET /v1/receipts/{id}', () => {
  test('gives the owner the signed receipt', async () => {
    const { status, json } = await ask(ID)
    expect(status).toBe(200)
    expect(json).toEqual({ id: ID, receipt: jws })
  })

  test("does not distinguish an unknown id from another customer's, by answer or by work", async () => {
    const stranger = await endpoints.addOwner()
    await ask(ID, getReceipt, stranger.apiKey)
    const answers = []
    for (const id of [ID, OTHER_ID]) {
      endpoints.statements.length = 0
      const { status, text, headers } = await ask(id, getReceipt, stranger.apiKey)
      const work = endpoints.statements.map((statement) => statement.sql)
      answers.push({ status, text, headers: [...headers], work })
    }
    expect(answers[0]).toEqual(answers[1])
    expect(answers[0]).toMatchObject({
      status: 404,
      text: JSON.stringify({
        error: {
          message: 'There is no receipt with this id.',
          type: 'invalid_request_error',
          code: 'not_found',
          param: null,
        },
      }),
    })
  })

  test.each(['nonsense', '%', "' OR 1=1 --", 'a\0b', 'x'.repeat(5000), ID.toUpperCase()])(
    'knows no receipt %j',
    async (id) => {
      expect(await ask(id)).toMatchObject({ status: 404, json: { error: { code: 'not_found' } } })
    },
  )

  test('asks for the id where it is missing', async () => {
    const { status, json } = await ask('')
    expect(status).toBe(400)
    expect(json).toMatchObject({
      error: { code: 'missing_field', message: 'The receipt id is missing.', param: 'id' },
    })
  })

  test('needs a key before all else', async () => {
    const { status, json } = await endpoints.ask(getReceipt, '/v1/receipts/', undefined, { id: '' })
    expect(status).toBe(401)
    expect(json).toMatchObject({ error: { code: 'unauthorized' } })
  })

  test('is unavailable while the storage is', async () => {
    endpoints.fault.of = () => new StorageUnavailable('away')
    const { status, headers, json } = await ask(ID)
    expect(status).toBe(503)
    expect(headers.get('retry-after')).toBe('2')
    expect(json).toMatchObject({ error: { code: 'service_unavailable' } })
  })
})

describe('past its retention a receipt', () => {
  test('is there until the last millisecond', async () => {
    endpoints.clock.now = EXPIRES - 1
    expect(await ask(ID)).toMatchObject({ status: 200 })
  })

  test('is gone by the clock, though no sweep has run', async () => {
    endpoints.clock.now = EXPIRES
    for (const handler of [getReceipt, getReceiptEvidence]) {
      const { status, json } = await ask(ID, handler)
      expect(status).toBe(410)
      expect(json).toEqual(gone())
    }
  })

  test('stays gone after each round of a sweep, though a clock was set back', async () => {
    for (let round = 0; round < 3; round++) {
      await sweep(endpoints.db, EXPIRES)
      endpoints.clock.now = round === 0 ? EXPIRES : NOW
      const { status, json } = await ask(ID)
      expect(status).toBe(410)
      expect(json).toEqual(gone())
    }
  })

  test('is still not found by another customer', async () => {
    const stranger = await endpoints.addOwner()
    await sweepAll(endpoints.db, EXPIRES)
    endpoints.clock.now = EXPIRES
    expect(await ask(ID, getReceipt, stranger.apiKey)).toMatchObject({ status: 404 })
  })

  test('keeps its digest and what says nothing of content', async () => {
    await sweepAll(endpoints.db, EXPIRES)
    const row = endpoints.db.connection
      .prepare('SELECT * FROM receipts WHERE receipt_id = ?')
      .get(ID)
    expect(row).toEqual({
      customer_id: owner.customerId,
      receipt_id: ID,
      jws: null,
      body_state: 2,
      sha256,
      kid: 'kid-1',
      evidence_refs: JSON.stringify([EVIDENCE]),
      model: 'nova/glm-5',
      provider: 'nova',
      prompt_tokens: 10,
      completion_tokens: 5,
      created_at: NOW,
      expires_at: EXPIRES,
    })
  })
})

describe('GET /v1/receipts/{id}/evidence', () => {
  test('gives the evidence that the receipt names', async () => {
    await store()
    const { status, json } = await ask(ID, getReceiptEvidence)
    expect(status).toBe(200)
    expect(json).toEqual({ evidence: [{ sha256: EVIDENCE, data_b64: 'ZXZpZGVuY2U=' }] })
  })

  test('is empty where the receipt carries all of its evidence itself', async () => {
    const receipt = receiptOf(OTHER_ID)
    await commitSettlement(endpoints.db, settlementOf(owner, 'r2', { receipt }))
    const { json } = await ask(OTHER_ID, getReceiptEvidence)
    expect(json).toEqual({ evidence: [] })
  })

  test('lives as long as the last receipt that names it, whichever was stored first', async () => {
    await store()
    const receipt = receiptOf(OTHER_ID, { expiresAtMs: EXPIRES + 5, evidenceRefs: [EVIDENCE] })
    await commitSettlement(endpoints.db, settlementOf(owner, 'r2', { receipt }))
    await store()
    await sweepAll(endpoints.db, EXPIRES + 4)
    endpoints.clock.now = EXPIRES + 4
    expect((await ask(OTHER_ID, getReceiptEvidence)).json).toMatchObject({
      evidence: [{ sha256: EVIDENCE }],
    })
    await sweepAll(endpoints.db, EXPIRES + 5 + HOUR_MS)
    expect(endpoints.db.connection.prepare('SELECT * FROM evidence').all()).toEqual([])
  })

  test("is another customer's as little as the receipt", async () => {
    await store()
    const stranger = await endpoints.addOwner()
    const { status } = await ask(ID, getReceiptEvidence, stranger.apiKey)
    expect(status).toBe(404)
  })
})
