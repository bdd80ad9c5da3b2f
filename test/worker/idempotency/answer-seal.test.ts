import { describe, expect, test } from 'vitest'
import { fromBase64, toBase64, utf8 } from '../../../src/protocol/bytes.ts'
import { AnswerSeal, nameOf } from '../../../src/worker/idempotency/answer-seal.ts'

const API_KEY = `cmr_${'c'.repeat(28)}_${'k'.repeat(10)}_${'s'.repeat(40)}`
const random = (length: number) => crypto.getRandomValues(new Uint8Array(length))
const REQUEST = ['POST', '/v1/chat/completions', '{"model":"glm-5"}']
const sealOf = (apiKey = API_KEY, idempotencyKey = 'order-1', parts = REQUEST) =>
  AnswerSeal.derive({ apiKey, idempotencyKey }, parts, random)

const free = () => {}

const ANSWER = {
  headers: { 'content-type': 'application/json', 'x-receipt-id': 'r1' },
  body: utf8('{"text":"a secret\\n answer"}\n'.repeat(50)),
}

describe('a kept answer', () => {
  test('comes back byte for byte, under newly derived keys', async () => {
    const text = await (await sealOf()).seal(ANSWER, 'request 1')
    expect(await (await sealOf()).open(text, 'request 1', free)).toEqual(ANSWER)
  })

  test('shows nothing of itself, is never sealed twice alike, and is smaller than it', async () => {
    const seal = await sealOf()
    const [first, second] = [await seal.seal(ANSWER, 'r'), await seal.seal(ANSWER, 'r')]
    expect(first).not.toBe(second)
    const bytes = Buffer.from(fromBase64(first)).toString('latin1')
    expect(bytes).not.toContain('secret')
    expect(bytes).not.toContain('application/json')
    expect(first.length).toBeLessThan(ANSWER.body.length)
  })

  test.each([
    ['another API key', () => sealOf(API_KEY.replace(/s$/, 't')), 'request 1'],
    ['another idempotency key', () => sealOf(API_KEY, 'order-2'), 'request 1'],
    ['another body', () => sealOf(API_KEY, 'order-1', ['POST', REQUEST[1] ?? '', '']), 'request 1'],
    ['the place of another request', () => sealOf(), 'request 2'],
  ])('does not open with %s', async (_what, other, boundTo) => {
    const text = await (await sealOf()).seal(ANSWER, 'request 1')
    await expect((await other()).open(text, boundTo, free)).rejects.toThrow(
      'the kept answer does not open',
    )
  })

  test('does not open once any byte of it was changed, or the end cut off', async () => {
    const seal = await sealOf()
    const bytes = fromBase64(await seal.seal({ ...ANSWER, body: utf8('short') }, 'r'))
    for (let index = 0; index < bytes.length; index++) {
      const changed = new Uint8Array(bytes)
      changed[index] = (changed[index] ?? 0) ^ 1
      await expect(seal.open(toBase64(changed), 'r', free)).rejects.toThrow(
        'the kept answer does not open',
      )
    }
    await expect(seal.open(toBase64(bytes.subarray(0, -1)), 'r', free)).rejects.toThrow(
      'the kept answer does not open',
    )
    await expect(seal.open('', 'r', free)).rejects.toThrow('the kept answer does not open')
  })

  test('may be empty, and may be megabytes', async () => {
    const seal = await sealOf()
    for (const body of [new Uint8Array(), random(60_000), new Uint8Array(8 * 1024 * 1024)]) {
      const opened = await seal.open(await seal.seal({ headers: {}, body }, 'r'), 'r', free)
      expect(Buffer.from(opened.body).equals(Buffer.from(body))).toBe(true)
    }
  })

  test('takes memory for all that it becomes, as it becomes it, and stops where there is none left', async () => {
    const seal = await sealOf()
    const body = new Uint8Array(8 * 1024 * 1024)
    const text = await seal.seal({ headers: {}, body }, 'r')
    expect(text.length).toBeLessThan(64 * 1024)
    let taken = 0
    await seal.open(text, 'r', (bytes) => (taken += bytes))
    expect(taken).toBeGreaterThanOrEqual(body.length)
    let left = 1024 * 1024
    const takeMemory = (bytes: number) => {
      left -= bytes
      if (left < 0) throw new Error('no memory')
    }
    await expect(seal.open(text, 'r', takeMemory)).rejects.toThrow('no memory')
    expect(left).toBeGreaterThan(-1024 * 1024)
  })
})

describe('the fingerprint of a request', () => {
  test('distinguishes parts, and reveals nothing without the keys of the caller', async () => {
    const of = async (parts: readonly string[], apiKey?: string) =>
      (await sealOf(apiKey, 'order-1', [...parts])).fingerprint
    const first = await of(['POST', '/v1/chat/completions', '{}'])
    expect(first).toMatch(/^[0-9a-f]{64}$/)
    expect(await of(['POST', '/v1/chat/completions', '{}'])).toBe(first)
    for (const parts of [
      ['POST', '/v1/chat/completions', '{ }'],
      ['POST', '/v1/responses', '{}'],
      ['POST/v1', '/chat/completions', '{}'],
      ['POST', '/v1/chat/completions', '{}', ''],
    ]) {
      expect(await of(parts)).not.toBe(first)
    }
    expect(await of(['POST', '/v1/chat/completions', '{}'], 'other')).not.toBe(first)
  })
})

describe('the name of a claim', () => {
  test('is of customer and key together', async () => {
    const names = await Promise.all([nameOf('a', 'bc'), nameOf('ab', 'c'), nameOf('a', 'bd')])
    expect(new Set(names).size).toBe(3)
    expect(await nameOf('a', 'bc')).toBe(names[0])
  })
})
