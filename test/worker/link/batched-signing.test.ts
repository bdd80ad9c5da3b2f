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
const late = () => new LinkUnavailable('late')

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
  return { calls, sign: batchedSigning(HOST, sign, 1_000, late) }
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

  it.each([
    ['a receipt', [], [headOf('1')]],
    ['its head', [{ head: 1, tail: 'tail', sha256: DIGEST }], [headOf('1')]],
  ])('fails whole where the daemon leaves out %s', async (_what, receipts, heads) => {
    const sign = batchedSigning(HOST, async () => ({ kid: 'k', heads, receipts }), 1_000, late)
    await expect(sign(unsigned('1'))).rejects.toThrow(
      'internal error: the daemon signed too little',
    )
  })
})
