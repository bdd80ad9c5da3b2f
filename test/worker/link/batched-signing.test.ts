import { describe, expect, it } from 'vitest'
import type { SignRequest, SignResponse } from '../../../src/protocol/link.ts'
import { batchedSigning } from '../../../src/worker/link/batched-signing.ts'
import { LinkUnavailable, type UnsignedReceipt } from '../../../src/worker/link/link.ts'

const HOST = { now: () => 0, keepAlive: () => {} }
const DIGEST = 'a'.repeat(64)

function unsigned(id: string, provider = 'nova'): UnsignedReceipt {
  return {
    claims: {
      jti: id,
      iat: 1,
      endpoint: '/v1/chat/completions' as const,
      requested_route: 'glm',
      routed_model: 'nova/glm',
      prompt_tokens: 1,
      completion_tokens: 1,
      request_digest: DIGEST,
      response_digest: DIGEST,
      digest_version: 1,
      failover: false,
      client_request_digest: DIGEST,
      client_response_digest: DIGEST,
    },
    provider,
    configuration_sha256: DIGEST,
    evidence_sha256: null,
  }
}

const headOf = (id: string) => ({ sha256: DIGEST, text: `head of ${id}`, evidence_refs: [id] })

const refused = () => new LinkUnavailable('the enclave daemon refused', { failure: 'refused' })

/** A daemon that notes what it is asked, and refuses whole batches that hold a receipt named `bad`. */
function daemon(failure: () => Error = refused) {
  const calls: string[][] = []
  const sign = async ({ receipts }: SignRequest): Promise<SignResponse> => {
    const ids = receipts.map(({ claims }) => claims.jti)
    calls.push(ids)
    if (ids.includes('bad')) throw failure()
    const signed = ids.map((id, head) => ({ head, tail: `tail of ${id}`, sha256: DIGEST }))
    return { kid: 'k', heads: ids.map(headOf), receipts: signed }
  }
  return { calls, sign: batchedSigning(HOST, sign) }
}

const first = { sha256: '1'.repeat(64), text: 'the first head', evidence_refs: ['e1'] }
const second = { sha256: '2'.repeat(64), text: 'the second head', evidence_refs: [] }

const withoutText = ({ text: _text, ...rest }: typeof first) => rest

/** An answer of some receipts under these heads: one under each, all others under the last. */
function signedUnder(heads: SignResponse['heads'], receipts: number): SignResponse {
  const signed = Array.from({ length: receipts }, (_, index) => ({
    head: Math.min(index, heads.length - 1),
    tail: 'tail',
    sha256: DIGEST,
  }))
  return { kid: 'k', heads, receipts: signed }
}

/** A daemon that answers its calls, which are noted, with these heads. */
function answering(answers: readonly SignResponse['heads'][], calls: SignRequest[]) {
  return async (request: SignRequest): Promise<SignResponse> => {
    const heads = answers[calls.push(request) - 1] ?? []
    return signedUnder(heads, request.receipts.length)
  }
}

function opened(open: PromiseWithResolvers<SignResponse>[]): Promise<SignResponse> {
  const call = Promise.withResolvers<SignResponse>()
  open.push(call)
  return call.promise
}

describe('batched signing', () => {
  it('asks once for the receipts of one moment, and gives each its own with the key', async () => {
    const { calls, sign } = daemon()
    const signed = await Promise.all(['1', '2', '3'].map((id) => sign(unsigned(id))))
    expect(signed).toEqual(
      ['1', '2', '3'].map((id) => ({
        kid: 'k',
        head: headOf(id),
        tail: `tail of ${id}`,
        sha256: DIGEST,
      })),
    )
    expect(calls).toEqual([['1', '2', '3']])
  })

  it('keeps the receipts of different providers apart', async () => {
    const { calls, sign } = daemon()
    await Promise.all([sign(unsigned('1')), sign(unsigned('2', 'vela')), sign(unsigned('3'))])
    expect(calls).toHaveLength(2)
    expect(calls).toEqual(expect.arrayContaining([['1', '3'], ['2']]))
  })

  it('asks one by one for what was refused together, so that one bad receipt takes no other with it', async () => {
    const { calls, sign } = daemon()
    const ends = await Promise.allSettled(['1', 'bad', '3'].map((id) => sign(unsigned(id))))
    expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(ends[1]).toMatchObject({ reason: { message: 'the enclave daemon refused' } })
    expect(calls).toEqual([['1', 'bad', '3'], ['1'], ['bad'], ['3']])
  })

  it('does not ask a daemon again that cannot be reached', async () => {
    const { calls, sign } = daemon(() => new LinkUnavailable('away', { failure: 'unreachable' }))
    const ends = await Promise.allSettled(['1', 'bad'].map((id) => sign(unsigned(id))))
    expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(calls).toHaveLength(1)
  })

  it('tells the daemon the last head of a provider, whose text is not sent again', async () => {
    const calls: SignRequest[] = []
    const answers = [[first], [withoutText(first)], [withoutText(first), second], [first]]
    const sign = batchedSigning(HOST, answering(answers, calls))
    const heads = []
    for (const ids of [['1'], ['2'], ['3', '4'], ['5']]) {
      const signed = await Promise.all(ids.map((id) => sign(unsigned(id))))
      heads.push(...signed.map(({ head }) => head))
    }
    expect(heads).toEqual([first, first, first, second, first])
    expect(calls.map((call) => call.known_head)).toEqual([
      undefined,
      first.sha256,
      first.sha256,
      second.sha256,
    ])
  })

  it('tells each provider its own head', async () => {
    const calls: SignRequest[] = []
    const sign = batchedSigning(HOST, answering([[first], [second]], calls))
    await sign(unsigned('1'))
    await sign(unsigned('2', 'vela'))
    expect(calls.map((call) => call.known_head)).toEqual([undefined, undefined])
  })

  it('gives each of two calls at the same time the head that it told the daemon', async () => {
    const open: PromiseWithResolvers<SignResponse>[] = []
    const sign = batchedSigning(HOST, () => opened(open))
    const before = sign(unsigned('1'))
    await expect.poll(() => open.length).toBe(1)
    open[0]?.resolve(signedUnder([first], 1))
    await before
    const slow = sign(unsigned('2'))
    await expect.poll(() => open.length).toBe(2)
    const quick = sign(unsigned('3'))
    await expect.poll(() => open.length).toBe(3)
    open[2]?.resolve(signedUnder([second], 1))
    expect((await quick).head).toEqual(second)
    open[1]?.resolve(signedUnder([withoutText(first)], 1))
    expect((await slow).head).toEqual(first)
  })

  it('fails whole where the daemon leaves out the text of a head that it was not told', async () => {
    const answers = [[withoutText(first)], [first], [withoutText(second)]]
    const sign = batchedSigning(HOST, answering(answers, []))
    const tooLittle = 'internal error: the daemon signed too little'
    await expect(sign(unsigned('1'))).rejects.toThrow(tooLittle)
    await expect(sign(unsigned('2'))).resolves.toMatchObject({ head: first })
    await expect(sign(unsigned('3'))).rejects.toThrow(tooLittle)
  })

  it.each([
    ['a receipt', [], [headOf('1')]],
    ['its head', [{ head: 1, tail: 'tail', sha256: DIGEST }], [headOf('1')]],
  ])('fails whole where the daemon leaves out %s', async (_what, receipts, heads) => {
    const sign = batchedSigning(HOST, async () => ({ kid: 'k', heads, receipts }))
    await expect(sign(unsigned('1'))).rejects.toThrow(
      'internal error: the daemon signed too little',
    )
  })
})
