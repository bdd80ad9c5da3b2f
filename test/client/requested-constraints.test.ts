import { describe, expect, test } from 'vitest'
import { requestedConstraints } from '../../src/client/requested-constraints.ts'
import { copyBytes, utf8 } from '../../src/protocol/bytes.ts'

const json = (body: unknown, headers: Record<string, string> = {}) =>
  requestedConstraints({
    headers: new Headers(headers),
    body: copyBytes(utf8(typeof body === 'string' ? body : JSON.stringify(body))),
  })

async function form(fields: Record<string, string | Blob>) {
  const data = new FormData()
  for (const [name, value] of Object.entries(fields)) data.set(name, value)
  const { headers, body } = await encoded(data)
  return requestedConstraints({ headers, body })
}

async function encoded(data: FormData) {
  const request = new Request('https://router.test', { method: 'POST', body: data })
  return { headers: request.headers, body: new Uint8Array(await request.arrayBuffer()) }
}

const HARDWARE = 'min=hardware; providers=vega,nova'
const SAME = { min: 'hardware', providers: ['nova', 'vega'] }

describe('what a request requires', () => {
  test.each([
    ['nothing', { model: 'm' }, {}, undefined],
    ['nothing by null', { attestation: null }, {}, undefined],
    ['by its header', { model: 'm' }, { 'x-service-require': HARDWARE }, SAME],
    ['by its body', { attestation: SAME }, { 'content-type': 'application/json' }, SAME],
    ['by both alike', { attestation: SAME }, { 'x-service-require': HARDWARE }, SAME],
    ['by an escaped name', '{"\\u0061ttestation":{"min":"hardware"}}', {}, { min: 'hardware' }],
  ])('is read where it requires %s', async (_what, body, headers, expected) => {
    expect(await json(body, headers)).toEqual(expected)
  })

  test('is read from a form', async () => {
    const file = new Blob(['RIFF'])
    expect(await form({ file, attestation: '{"min":"simulated"}' })).toEqual({ min: 'simulated' })
    expect(await form({ file, model: 'whisper' })).toBeUndefined()
  })

  test('is nothing where there is no body', async () => {
    expect(await requestedConstraints({ headers: new Headers(), body: undefined })).toBeUndefined()
  })

  test.each([
    [{}, { 'x-service-require': 'min=Hardware' }, 'the header x-service-require of the request'],
    [{}, { 'x-service-require': '' }, 'the header x-service-require of the request'],
    [{ attestation: { max: 'none' } }, {}, 'the member "attestation" of the request'],
    [{ attestation: {} }, {}, 'the member "attestation" of the request'],
    ['{', {}, 'the body of the request'],
    [
      { attestation: { min: 'none' } },
      { 'x-service-require': HARDWARE },
      'header and body of the request require different things',
    ],
  ])('is never taken for less: %o %o', async (body, headers, reason) => {
    await expect(json(body, headers)).rejects.toMatchObject({
      name: 'MalformedEvidence',
      document: 'constraints',
      reason: expect.stringContaining(reason),
    })
  })

  test('in a form that is cut is never taken for nothing', async () => {
    const data = new FormData()
    data.set('attestation', '{"min":"hardware"}')
    const { headers, body } = await encoded(data)
    await expect(requestedConstraints({ headers, body: body.slice(0, 40) })).rejects.toMatchObject({
      document: 'constraints',
    })
  })
})
