import { compactVerify, importJWK } from 'jose'
import { expect, test } from 'vitest'
import { makeReceiptKey } from '../../../src/enclave/keys/receipt-key.ts'
import { UNATTESTED } from '../../../src/enclave/proofs/inference-hop.ts'
import { createReceiptSigner } from '../../../src/enclave/sign/receipt-signer.ts'
import { describeRouterHop } from '../../../src/enclave/sign/router-block.ts'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import { batchedSigning } from '../../../src/worker/link/batched-signing.ts'
import type { Link, SignedReceipt } from '../../../src/worker/link/link.ts'
import { receiptOf, receiptQuery } from '../../../src/worker/receipts/find.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import type { Exchange } from '../../../src/worker/settle/exchange.ts'
import { ReceiptHeads } from '../../../src/worker/settle/receipt-heads.ts'
import { settleWholeAnswer } from '../../../src/worker/settle/settle-whole-answer.ts'
import { settleWithReceipt, type SettleDeps } from '../../../src/worker/settle/settle.ts'
import { StorageUnavailable } from '../../../src/worker/storage/database.ts'
import { keptEnvelope } from '../../enclave/envelope/cached-envelope.ts'
import { addCustomer, askOf, NOW, readLedgerTotals } from '../../support/ledger.ts'
import { pricedRoute } from '../../support/routes.ts'
import { openSqlite } from '../../support/sqlite-database.ts'

const ROUTE = pricedRoute({ currency: 'eur', input_per_mtok: 1, output_per_mtok: 1 })
const HOST = { now: () => NOW, keepAlive: () => {} }
const DIGEST = 'ab'.repeat(32)

/** A daemon's signer in this process. */
async function signing(): Promise<{ readonly sign: Link['sign']; readonly jwk: object }> {
  const key = await makeReceiptKey()
  const router = describeRouterHop({
    envelope: keptEnvelope(),
    trustBundleJws: 'd.e.f',
    platform: 'simulated',
  })
  const signer = createReceiptSigner({
    key,
    proofs: { hop: () => UNATTESTED },
    routerHop: () => router,
    proveMessage: () => Promise.reject(new Error('no provider signs messages here')),
  })
  return { sign: batchedSigning(HOST, signer), jwk: key.jwk }
}

async function opened(change: Partial<SettleDeps> = {}) {
  const db = openSqlite()
  const key = await addCustomer(db, { balance: 100_000n })
  const { sign, jwk } = await signing()
  const heads = new ReceiptHeads({ directory: () => db }, () => NOW)
  const deps: Partial<SettleDeps> = {
    coalesce: (_provider, work) => work(),
    ledger: db,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- all that this settling asks of the daemon
    link: { sign } as Link,
    log: () => {},
    rememberKey: async () => {},
    rememberHead: (head, expiresAtMs) => heads.remember(head, expiresAtMs),
    configurationSha256: DIGEST,
    usdEur: undefined,
    defaultRetentionDays: 14,
    now: () => NOW,
    ...change,
  }
  const settle = async (requestId: string, receiptId: string, signed?: SignedReceipt) => {
    const exchange = {
      requestId,
      admission: await admit(db, askOf(key, requestId, { nano: 80n })),
      endpoint: '/v1/chat/completions',
      modality: 'chat',
      requestedRoute: 'glm-5',
      route: ROUTE,
      failover: false,
      constraints: undefined,
      usage: { promptTokens: 1, completionTokens: 1, cachedTokens: 0, cacheWriteTokens: 0 },
      usageCapped: false,
      billedSeconds: undefined,
      reportedSeconds: null,
    } satisfies Exchange
    const digests = {
      providerRequest: DIGEST,
      providerResponse: DIGEST,
      clientRequest: DIGEST,
      clientResponse: await sha256Hex(requestId),
    }
    const proof = { digests, evidenceSha256: null, decoded: false }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the rest is not needed
    const all = deps as SettleDeps
    if (signed === undefined) await settleWithReceipt(exchange, proof, receiptId, all)
    else {
      const bytes = { clientRequest: utf8('asked'), clientResponse: utf8(requestId) }
      const provider = { requestDigest: DIGEST, responseDigest: DIGEST }
      const found = { ...provider, ...bytes, evidenceSha256: null, decoded: false, signed }
      await settleWholeAnswer(exchange, receiptId, found, all)
    }
  }
  return { db, settle, jwk }
}

const IDS = ['2f1c6a3e-8f5b-4c1e-9c55-0d9f1b2a3c4d', '0b6c1f3a-53a4-4a53-9f55-6d1f4cf0a111']

test('receipts of one hop are fetched as they were signed, and what they have in common is stored once', async () => {
  const { db, settle, jwk } = await opened()
  for (const [index, id] of IDS.entries()) await settle(`request-${index}`, id)
  expect(db.connection.prepare('SELECT COUNT(*) AS n FROM receipt_heads').get()).toEqual({ n: 1 })
  for (const [index, id] of IDS.entries()) {
    const [rows] = await db.batch([receiptQuery('acme', id, NOW)])
    const { jws } = receiptOf(rows?.[0])
    expect(rows?.[0]?.['sha256']).toBe(await sha256Hex(jws))
    const { payload } = await compactVerify(jws, await importJWK(jwk, 'ES256'))
    expect(JSON.parse(new TextDecoder().decode(payload))).toMatchObject({
      jti: id,
      client_response_digest: await sha256Hex(`request-${index}`),
      router_attestation: { trust_bundle_jws: 'd.e.f' },
      inference_attestation: UNATTESTED.block,
    })
  }
})

test('nothing is settled before the head of its receipt is stored', async () => {
  const seen: unknown[] = []
  const { db, settle } = await opened({
    rememberHead: async () => {
      seen.push(await readLedgerTotals(db))
      throw new Error('refused')
    },
  })
  await expect(settle('request-0', IDS[0] ?? '')).rejects.toThrow(new Error('refused'))
  const untouched = { balance: 100_000n, reserved: 80n, rows: 0, open: 1 }
  expect([...seen, await readLedgerTotals(db)]).toEqual([untouched, untouched])
})

test('a settlement whose storage is away leaves its group before it is tried again, so that no other waits for it', async () => {
  const groups: string[] = []
  const { db, settle } = await opened({
    coalesce: async (_provider, work) => {
      groups.push('entered')
      try {
        await work()
      } finally {
        groups.push('left')
      }
    },
    rememberHead: async () => {
      if (groups.length < 5) throw new StorageUnavailable('away')
    },
  })
  await settle('request-0', IDS[0] ?? '')
  expect(groups).toEqual(['entered', 'left', 'entered', 'left', 'entered', 'left'])
  expect(await readLedgerTotals(db)).toMatchObject({ rows: 1, open: 0 })
})

async function signedBeside(): Promise<SignedReceipt> {
  const head = { sha256: await sha256Hex('head'), text: 'head', evidence_refs: [] }
  return { kid: 'k', head, tail: '.tail', sha256: await sha256Hex('head.tail') }
}

test('a receipt that came beside its answer is stored as it is, and is not signed again where the storage was away', async () => {
  const groups: string[] = []
  let isAway = true
  const { db, settle } = await opened({
    coalesce: async (group, work) => {
      groups.push(group)
      await work()
    },
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- nothing is asked of the daemon
    link: {} as Link,
    rememberKey: async () => {
      if (isAway) {
        isAway = false
        throw new StorageUnavailable('away')
      }
    },
  })
  await settle('request-0', IDS[0] ?? '', await signedBeside())
  // It waits with the settlements that nothing has to be signed for.
  expect(groups).toEqual(['', ''])
  const [rows] = await db.batch([receiptQuery('acme', IDS[0] ?? '', NOW)])
  expect(receiptOf(rows?.[0]).jws).toBe('head.tail')
  expect(await readLedgerTotals(db)).toMatchObject({ rows: 1, open: 0 })
})
