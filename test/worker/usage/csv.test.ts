import { beforeEach, describe, expect, test } from 'vitest'
import { commitSettlement } from '../../../src/worker/settle/ledger.ts'
import { listUsage } from '../../../src/worker/usage/handler.ts'
import { summarizeUsage } from '../../../src/worker/usage/summary-handler.ts'
import { NOW, settlementOf } from '../../support/ledger.ts'
import { ownedEndpoints, type OwnedEndpoints, type Owner } from '../../support/owned-endpoint.ts'

const DAY_MS = 86_400_000

let endpoints: OwnedEndpoints
let owner: Owner

beforeEach(async () => {
  endpoints = ownedEndpoints()
  owner = await endpoints.addOwner({ billing: 'postpaid' })
})

const settle = (id: string, more: Parameters<typeof settlementOf>[2] = {}) =>
  commitSettlement(endpoints.db, settlementOf(owner, id, more))

const headers = () => ({ authorization: `Bearer ${owner.apiKey}`, accept: 'text/csv' })
const csv = (search = '') => endpoints.open(listUsage, `/v1/usage${search}`, headers())

/** Statements that read the ledger. */
const reads = () => endpoints.statements.filter(({ sql }) => sql.includes('FROM usage')).length

describe('GET /v1/usage with Accept: text/csv', () => {
  test('is a file of every row, newest first', async () => {
    for (const id of ['r1', 'r2', 'r3']) await settle(id, { nano: 5n })
    const answer = await csv()
    expect([answer.status, answer.headers.get('content-type')]).toEqual([
      200,
      'text/csv; charset=utf-8; header=present',
    ])
    expect(answer.headers.get('content-disposition')).toBe('attachment; filename="usage.csv"')
    const lines = (await answer.text()).split('\r\n')
    expect(lines.map((line) => line.split(',')[0])).toEqual(['id', 'r3', 'r2', 'r1', ''])
  })

  test('takes the parameters of the query, and reports their errors in JSON', async () => {
    await settle('r1', { model: 'nova/other' })
    await settle('r2')
    await settle('r3')
    const ids = async (search: string) =>
      (await (await csv(search)).text())
        .split('\r\n')
        .slice(1, -1)
        .map((line) => line.split(',')[0])
    expect(await ids('?model=nova/glm-5')).toEqual(['r3', 'r2'])
    expect(await ids('?limit=1')).toEqual(['r3'])
    const wrong = await csv('?start=yesterday')
    expect([wrong.status, wrong.headers.get('content-type')]).toEqual([400, 'application/json'])
    expect(await wrong.json()).toMatchObject({
      error: { code: 'invalid_parameter', param: 'start' },
    })
    const nobody = await endpoints.open(listUsage, '/v1/usage', { accept: 'text/csv' })
    expect(nobody.status).toBe(401)
  })

  test('is read from the ledger page by page as the client takes it, and no further', async () => {
    for (let row = 0; row < 1_100; row++) await settle(`r${row}`)
    endpoints.statements.length = 0
    const answer = await csv()
    const reader = answer.body?.getReader()
    await reader?.read()
    expect(reads()).toBeLessThanOrEqual(1)
    await reader?.read()
    await reader?.cancel()
    expect(reads()).toBeLessThanOrEqual(2)
    const whole = await (await csv()).text()
    expect(whole.split('\r\n')).toHaveLength(1_102)
    expect(reads()).toBeGreaterThanOrEqual(4)
  })

  test('breaks off where the ledger fails, so that no part is taken for the whole', async () => {
    for (let row = 0; row < 600; row++) await settle(`r${row}`)
    const answer = await csv()
    const reader = answer.body?.getReader()
    await reader?.read()
    await reader?.read()
    endpoints.fault.of = () => new Error('the disk is gone')
    await expect(reader?.read()).rejects.toThrow('the disk is gone')
  })

  test('is not what is answered to a client that refuses it', async () => {
    const refusing = { ...headers(), accept: 'application/json, text/csv;q=0' }
    const answer = await endpoints.open(listUsage, '/v1/usage', refusing)
    expect(answer.headers.get('content-type')).toBe('application/json')
  })
})

describe('GET /v1/usage/summary', () => {
  const summary = (search = '') =>
    endpoints.ask(summarizeUsage, `/v1/usage/summary${search}`, owner.apiKey)

  beforeEach(async () => {
    const large = 2n ** 53n + 1n
    await settle('r1', { nano: large, createdAtMs: NOW - DAY_MS, model: 'nova/other' })
    await settle('r2', { nano: large, createdAtMs: NOW })
    await settle('r3', { nano: 1n, createdAtMs: NOW, provider: 'vela', audioSeconds: 1.5 })
  })

  test('adds up by day where nothing else is asked for, money to the last nano', async () => {
    const { status, text } = await summary()
    expect(status).toBe(200)
    const counts = '"prompt_tokens":20,"completion_tokens":10,"audio_seconds":1.5'
    expect(text).toBe(
      `{"data":[{"day":"2026-11-20","requests":2,${counts},"cost_eur":9007199.254740994},` +
        '{"day":"2026-11-19","requests":1,"prompt_tokens":10,"completion_tokens":5,' +
        '"audio_seconds":0,"cost_eur":9007199.254740993}],' +
        '"total":{"requests":3,"prompt_tokens":30,"completion_tokens":15,"audio_seconds":1.5,' +
        '"cost_eur":18014398.509481987}}',
    )
  })

  test.each([
    ['model', ['model'], 2],
    ['provider', ['provider'], 2],
    ['key', ['key_prefix', 'key_name'], 1],
    ['day,model,key,provider', ['day', 'model', 'provider', 'key_prefix', 'key_name'], 3],
  ])('adds up by %s', async (groupBy, members, groups) => {
    const { json } = await summary(`?group_by=${groupBy}`)
    const data = json['data']
    if (!Array.isArray(data)) throw new Error('no data')
    expect(data).toHaveLength(groups)
    for (const group of data) expect(Object.keys(group)).toEqual(expect.arrayContaining(members))
    expect(json).toMatchObject({ total: { requests: 3 } })
  })

  test('adds up rows of the query alone', async () => {
    const { json } = await summary('?start=2026-11-20T00:00:00Z&model=nova/glm-5&group_by=model')
    expect(json).toMatchObject({ data: [{ model: 'nova/glm-5', requests: 2 }] })
    expect((await summary('?key_prefix=cmr_other')).json).toMatchObject({ data: [] })
  })

  test('is a file of the same sums with Accept: text/csv', async () => {
    const path = '/v1/usage/summary?group_by=day,provider'
    const answer = await endpoints.open(summarizeUsage, path, headers())
    expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present')
    expect(answer.headers.get('content-disposition')).toContain('filename="usage-summary.csv"')
    expect((await answer.text()).split('\r\n')).toEqual([
      'day,provider,requests,prompt_tokens,completion_tokens,audio_seconds,cost_eur',
      '2026-11-20,nova,1,10,5,0,9007199.254740993',
      '2026-11-20,vela,1,10,5,1.5,0.000000001',
      '2026-11-19,nova,1,10,5,0,9007199.254740993',
      '',
    ])
  })

  test.each([
    ['?group_by=customer', 'group_by'],
    ['?group_by=day,day', 'group_by'],
    ['?group_by=', 'group_by'],
    ['?end=never', 'end'],
  ])('refuses %s', async (search, param) => {
    const { status, json } = await summary(search)
    expect([status, json]).toMatchObject([400, { error: { code: 'invalid_parameter', param } }])
  })

  test('is of the caller alone', async () => {
    const other = await endpoints.addOwner({ billing: 'postpaid' })
    const { json } = await endpoints.ask(summarizeUsage, '/v1/usage/summary', other.apiKey)
    expect(json).toMatchObject({ data: [], total: { requests: 0 } })
    const nobody = await endpoints.ask(summarizeUsage, '/v1/usage/summary')
    expect([nobody.status, nobody.json]).toMatchObject([401, { error: { code: 'unauthorized' } }])
  })
})
