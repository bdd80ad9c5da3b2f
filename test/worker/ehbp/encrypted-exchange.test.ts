import { beforeEach, describe, expect, test } from 'vitest'
import { makeHpkeKey, type HpkeKey } from '../../../src/enclave/hpke/hpke-key.ts'
import { HpkeKeyring } from '../../../src/enclave/hpke/hpke-keyring.ts'
import { concatBytes } from '../../../src/protocol/bytes.ts'
import { encodeFrame } from '../../../src/protocol/ehbp-frames.ts'
import {
  EncryptedExchange,
  encryptedExchange,
  type OpeningDeps,
} from '../../../src/worker/ehbp/encrypted-exchange.ts'
import type { ApiError } from '../../../src/worker/http/errors.ts'
import { errorReply } from '../../../src/worker/http/reply.ts'
import { toApiError } from '../../../src/worker/http/to-api-error.ts'
import { Refusals } from '../../../src/worker/limits/refusals.ts'
import { SourceBudget } from '../../../src/worker/http/source-budget.ts'
import { LinkUnavailable } from '../../../src/worker/link/link.ts'
import { ehbpDeps, opening } from '../../support/ehbp-host.ts'
import { senderTo, type Sender } from '../../support/ehbp-sender.ts'

let key: HpkeKey
let keyring: HpkeKeyring
let sender: Sender

beforeEach(async () => {
  key = await makeHpkeKey()
  keyring = new HpkeKeyring(key, Date.now, { maxUses: 8, graceMs: 1000, maxFormer: 7 })
  sender = await senderTo(key.config)
})

const deps = ehbpDeps(() => keyring)

function post(body: BodyInit, headers: Record<string, string> = {}): Request {
  const all = { 'content-type': 'application/json', ...headers }
  return new Request('https://router.test/v1/x', { method: 'POST', body, headers: all })
}

const exchange = (enc = sender.enc, source = 'a client') => new EncryptedExchange(enc, source, deps)

/** The code of the refusal and, as the client gets it, whether it is encrypted. */
async function refusalOf(given: EncryptedExchange, body: BodyInit) {
  try {
    await given.open(post(body), opening())
  } catch (error) {
    const answer = await given.seal(errorReply(toApiError(error)))
    const encrypted = answer.headers.has('ehbp-response-nonce')
    const text = encrypted ? (await sender.open(answer)).join('') : await answer.text()
    const parsed: object = JSON.parse(text)
    return { encrypted, status: answer.status, ...parsed }
  }
  return 'accepted'
}

describe('an encrypted request', () => {
  test('is the plain one to the endpoint: body, length and headers', async () => {
    const request = post(await sender.seal('{"a":1}'), { 'ehbp-encapsulated-key': sender.enc })
    const plain = await exchange().open(request, opening())
    expect(await plain.text()).toBe('{"a":1}')
    expect(Object.fromEntries(plain.headers)).toEqual({
      'content-type': 'application/json',
      'content-length': '7',
    })
  })

  test('may come in frames, which are joined in their order', async () => {
    const body = await sender.seal('{"a"', ':', '1}')
    expect(await (await exchange().open(post(body), opening())).text()).toBe('{"a":1}')
  })

  test('made for the former key is accepted for its grace', async () => {
    keyring.adopt(await makeHpkeKey())
    const plain = await exchange().open(post(await sender.seal('late')), opening())
    expect(await plain.text()).toBe('late')
  })

  test('has its memory counted, of what came and of what it decrypts to', async () => {
    const taken: number[] = []
    const body = await sender.seal('x'.repeat(1000))
    await exchange().open(
      post(body),
      opening('customer', (bytes) => taken.push(bytes)),
    )
    expect(taken.reduce((sum, bytes) => sum + bytes, 0)).toBeGreaterThanOrEqual(2 * body.length)
  })

  test.each([
    ['is no hex', 'zz'.repeat(32)],
    ['is uppercase', 'AB'.repeat(32)],
    ['is too short', 'ab'.repeat(31)],
    ['is empty', ''],
    ['is a point of low order', '00'.repeat(32)],
  ])('whose encapsulated key %s is refused in the clear', async (_what, enc) => {
    expect(await refusalOf(exchange(enc), await sender.seal('x'))).toMatchObject({
      encrypted: false,
      status: 400,
      error: { code: 'invalid_encryption' },
    })
  })

  test.each([
    ['of no frame', async () => new Uint8Array()],
    ['of an empty frame', async () => encodeFrame(new Uint8Array())],
    ['that ends within a frame', async () => (await sender.seal('x')).slice(0, -1)],
    [
      'that ends within a length',
      async () => concatBytes(await sender.seal('x'), new Uint8Array(3)),
    ],
    ['with a frame announced as 4 GiB', async () => Uint8Array.of(255, 255, 255, 255, 1)],
    [
      'of a hundred thousand frames',
      async () => new Uint8Array(500_000).map((_, i) => +(i % 5 === 3)),
    ],
  ])('%s is refused in the clear', async (_what, body) => {
    expect(await refusalOf(exchange(), await body())).toMatchObject({
      encrypted: false,
      status: 400,
      error: { code: 'invalid_encryption', message: 'The encrypted body cannot be decrypted.' },
    })
  })

  test('whose later frame is changed is refused, by an error encrypted under its key', async () => {
    const body = await sender.seal('{"a":1', '}')
    body[body.length - 1] = (body.at(-1) ?? 0) ^ 1
    expect(await refusalOf(exchange(), body)).toMatchObject({
      encrypted: true,
      status: 400,
      error: { code: 'invalid_encryption' },
    })
  })

  test('with a frame taken out of the middle is refused', async () => {
    const [first, second, third] = [
      await sender.seal('{"a":'),
      await sender.seal('1,"b":'),
      await sender.seal('2}'),
    ]
    expect(second?.length).toBeGreaterThan(0)
    const cut = concatBytes(first ?? new Uint8Array(), third ?? new Uint8Array())
    expect(await refusalOf(exchange(), cut)).toMatchObject({ status: 400, encrypted: true })
  })

  test('made for a key that is not in use is the problem that stock clients know', async () => {
    sender = await senderTo((await makeHpkeKey()).config)
    expect(await refusalOf(exchange(), await sender.seal('x'))).toMatchObject({
      encrypted: false,
      status: 422,
      type: 'urn:ietf:params:ehbp:error:key-config',
      error: { code: 'key_config_mismatch' },
    })
  })

  test('sent a second time is refused in the clear', async () => {
    const body = await sender.seal('x')
    await exchange().open(post(body), opening())
    expect(await refusalOf(exchange(), body)).toMatchObject({
      encrypted: false,
      status: 400,
      error: { message: 'This encrypted request was sent before.' },
    })
  })

  test('is refused while the memory of uses is full', async () => {
    for (let i = 1; i <= 8; i++) {
      await keyring.decapsulate(new Uint8Array(32).fill(i), `owner ${i}`)
    }
    expect(await refusalOf(exchange(), await sender.seal('x'))).toMatchObject({
      status: 503,
      error: { code: 'service_unavailable' },
    })
  })

  test('of a customer that has its share of the uses is refused, and the daemon is not asked each time', async () => {
    let asked = 0
    const link = {
      decapsulate: async () => {
        asked += 1
        return { ok: false, reason: 'share' } as const
      },
    }
    const clock = { now: 0 }
    const shareRefusals = new Refusals(() => clock.now)
    const open = async (owner: string) =>
      new EncryptedExchange(sender.enc, 'a client', { ...deps, link, shareRefusals })
        .open(post(await sender.seal('x')), opening(owner))
        .catch(({ code, details }: ApiError) => ({ code, retryAfter: details.retryAfter }))
    const refused = { code: 'rate_limit_exceeded', retryAfter: 5 }
    expect([await open('greedy'), await open('greedy'), asked]).toEqual([refused, refused, 1])
    expect([await open('other'), asked]).toEqual([refused, 2])
    clock.now = 2_000
    expect([await open('greedy'), asked]).toEqual([refused, 3])
  })

  test("is decrypted in its customer's turn, at a cost by its size", async () => {
    const costs: number[] = []
    const inTurn: OpeningDeps['inTurn'] = (cost, work) => {
      costs.push(cost)
      return work(() => {})
    }
    const body = await sender.seal('x'.repeat(256 * 1024))
    await exchange().open(post(body), { ...opening(), inTurn })
    expect(costs.map(Math.floor)).toEqual([5])
  })

  test('larger than any body may be is refused by its length', async () => {
    const request = post('x', { 'content-length': '30000000' })
    await expect(exchange().open(request, opening())).rejects.toMatchObject({
      code: 'request_too_large',
    })
  })
})

describe('the answer to it', () => {
  test('is encrypted, and ends with an empty frame', async () => {
    const given = exchange()
    await given.open(post(await sender.seal('x')), opening())
    const answer = await given.seal(Response.json({ secret: 1 }, { headers: { 'x-a': 'b' } }))
    expect(answer.headers.get('content-length')).toBeNull()
    expect(answer.headers.get('x-a')).toBe('b')
    expect(await sender.open(answer.clone())).toEqual(['{"secret":1}', ''])
    expect(await answer.text()).not.toContain('secret')
  })

  test('without a body is one empty frame', async () => {
    const given = exchange()
    await given.open(post(await sender.seal('x')), opening())
    expect(await sender.open(await given.seal(new Response(null)))).toEqual([''])
  })

  test('comes in frames of 64 KiB', async () => {
    const given = exchange()
    await given.open(post(await sender.seal('x')), opening())
    const answer = await given.seal(new Response('y'.repeat(150_000)))
    const sizes = (await sender.open(answer)).map((frame) => frame.length)
    expect(sizes).toEqual([65_536, 65_536, 18_928, 0])
  })

  test('is encrypted as well where the request was refused before its body was read', async () => {
    const given = exchange()
    const answer = await given.seal(Response.json({ error: 'no key' }, { status: 401 }))
    expect(answer.status).toBe(401)
    expect(await sender.open(answer)).toEqual(['{"error":"no key"}', ''])
    // A refused request may be sent again with the right key: nothing of it was used up.
    expect(await refusalOf(exchange(), await sender.seal('x'))).toBe('accepted')
  })

  test('is the plain error for requests refused early that one source, or all together, send too often', async () => {
    let asked = 0
    const link = {
      decapsulate: (enc: string, owner: string | null) => {
        asked += 1
        return deps.link.decapsulate(enc, owner)
      },
    }
    const limits = { perSource: 2, total: 3, windowMs: 1_000 }
    const clock = { now: 0 }
    const refusalBudget = new SourceBudget(limits, () => clock.now)
    const encrypted = async (source: string) => {
      const given = new EncryptedExchange(sender.enc, source, { ...deps, link, refusalBudget })
      const answer = await given.seal(Response.json({}, { status: 401 }))
      expect(answer.status).toBe(401)
      return answer.headers.has('ehbp-response-nonce')
    }
    const sent = []
    for (const source of ['a', 'a', 'a', 'b', 'b', 'c']) sent.push(await encrypted(source))
    expect(sent).toEqual([true, true, false, true, false, false])
    expect(asked).toBe(3)
    clock.now = 1_000
    expect(await encrypted('a')).toBe(true)
  })

  test('is the plain error where the daemon is away', async () => {
    const away = { decapsulate: () => Promise.reject(new LinkUnavailable('away')) }
    const given = new EncryptedExchange(sender.enc, 'a client', { ...deps, link: away })
    const refused = await refusalOf(given, await sender.seal('x'))
    expect(refused).toMatchObject({ encrypted: false, status: 503 })
  })
})

describe('a request begins an encrypted exchange', () => {
  const header = { 'ehbp-encapsulated-key': 'ab'.repeat(32) }
  const keyed = { audience: 'keyed' }

  test('where it has the header and a body', () => {
    expect(encryptedExchange(post('x', header), keyed, deps)).toBeInstanceOf(EncryptedExchange)
    expect(encryptedExchange(post('x'), keyed, deps)).toBeUndefined()
    const get = new Request('https://router.test/v1/usage', { headers: header })
    expect(encryptedExchange(get, keyed, deps)).toBeUndefined()
  })

  test.each(['public', 'admin'])('nowhere else: an endpoint that is %s refuses', (audience) => {
    expect(() => encryptedExchange(post('x', header), { audience }, deps)).toThrow(
      'This endpoint takes no encrypted bodies.',
    )
  })
})
