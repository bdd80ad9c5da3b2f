import { describe, expect, it, vi } from 'vitest'
import { fromUtf8, utf8 } from '../../../src/protocol/bytes.ts'
import { Drains } from '../../../src/worker/http/drain.ts'
import { readBody } from '../../../src/worker/http/body.ts'
import { ApiError } from '../../../src/worker/http/errors.ts'
import { told } from '../../support/refusal.ts'

const tooLarge = () => new ApiError('request_too_large', 'The request body is larger than 8 bytes.')
const LIMITS = { maxBytes: 8, tooLarge, now: () => Date.now() }
const REFUSED = { code: 'request_too_large', message: 'The request body is larger than 8 bytes.' }

interface Sent {
  readonly request: Request
  readonly state: { pulled: number; cancelled: boolean }
}

/** A request whose body comes in the given pieces; `broken` lets it break off after the last. */
function sent(
  pieces: readonly string[],
  headers: Record<string, string> = {},
  broken = false,
): Sent {
  const state = { pulled: 0, cancelled: false }
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const piece = pieces[state.pulled++]
        if (piece !== undefined) controller.enqueue(utf8(piece))
        else if (broken) controller.error(new Error('connection reset'))
        else controller.close()
      },
      cancel() {
        state.cancelled = true
      },
    },
    { highWaterMark: 0 },
  )
  const init = { method: 'POST', body, headers, duplex: 'half' }
  return { request: new Request('http://localhost/', init), state }
}

async function refusalOf(request: Request) {
  return told(await readBody(request, LIMITS).catch((error: unknown) => error))
}

describe('readBody', () => {
  it.each([
    ['in one piece', ['12345678']],
    ['in many pieces', ['1', '2345', '', '678']],
  ])('gives a body %s up to the very limit', async (_, pieces) => {
    const body = await readBody(sent(pieces).request, LIMITS)
    expect(fromUtf8(body)).toBe('12345678')
    expect(body.buffer.byteLength).toBe(8)
  })

  it('joins a body far longer than its first room', async () => {
    const pieces = Array.from({ length: 50 }, (_, index) => String(index % 10).repeat(10_000))
    const body = await readBody(sent(pieces).request, { ...LIMITS, maxBytes: 1_000_000 })
    expect(fromUtf8(body)).toBe(pieces.join(''))
  })

  it('gives a body of declared length', async () => {
    const { request } = sent(['1234', '5678'], { 'content-length': '8' })
    await expect(readBody(request, LIMITS)).resolves.toEqual(utf8('12345678'))
  })

  it('reads an absent body as empty', async () => {
    const request = new Request('http://localhost/', { method: 'POST' })
    await expect(readBody(request, LIMITS)).resolves.toEqual(new Uint8Array())
  })

  it.each([
    ['a declared', { 'content-length': '27' }],
    ['an undeclared', {}],
  ])(
    'refuses %s length over the limit, and leaves the rest to be drained',
    async (_what, headers) => {
      const { request, state } = sent(['1234', '56789', 'never kept', 'nor this'], headers)
      await expect(refusalOf(request)).resolves.toEqual(REFUSED)
      await new Drains().drain(request.body)
      expect(state).toEqual({ pulled: 5, cancelled: false })
    },
  )

  it('holds a body to the limit whatever length it declared', async () => {
    const { request } = sent(['1234', '56789'], { 'content-length': '4' })
    await expect(refusalOf(request)).resolves.toEqual(REFUSED)
  })

  it.each(['gzip', 'br', 'identity, gzip', 'aws-chunked'])(
    'refuses Content-Encoding %s',
    async (encoding) => {
      const { request, state } = sent(['1234'], { 'content-encoding': encoding })
      await expect(refusalOf(request)).resolves.toEqual({
        code: 'invalid_request_error',
        message: 'The request body must not be compressed.',
        param: 'Content-Encoding',
      })
      expect(state.pulled).toBe(0)
    },
  )

  it('takes Content-Encoding identity for none', async () => {
    const { request } = sent(['1234'], { 'content-encoding': 'Identity' })
    await expect(readBody(request, LIMITS)).resolves.toEqual(utf8('1234'))
  })

  it.each([
    ['declared', { 'content-length': '8' }],
    ['undeclared', {}],
  ])('answers a body of %s length that breaks off as a bad request', async (_, headers) => {
    await expect(refusalOf(sent(['1234'], headers, true).request)).resolves.toEqual({
      code: 'invalid_request_error',
      message: 'The request body broke off.',
    })
  })
  it.each([
    ['declared', { 'content-length': '8' }],
    ['undeclared', {}],
  ])('gives a body of %s length up that comes too slowly', async (_, headers) => {
    vi.useFakeTimers()
    try {
      const body = new ReadableStream({ pull: () => new Promise<void>(() => {}) })
      const init = { method: 'POST', body, headers, duplex: 'half' }
      const refusal = refusalOf(new Request('http://localhost/', init))
      await vi.advanceTimersByTimeAsync(10_001)
      await expect(refusal).resolves.toEqual({
        code: 'request_timeout',
        message: 'The request body came too slowly.',
      })
    } finally {
      vi.useRealTimers()
    }
  })

  it('gives a long body up of which nothing comes, whatever length it declared', async () => {
    vi.useFakeTimers()
    try {
      const body = new ReadableStream({ type: 'bytes', pull: () => new Promise<void>(() => {}) })
      const headers = { 'content-length': '8000000' }
      const init = { method: 'POST', body, headers, duplex: 'half' }
      const limits = { ...LIMITS, maxBytes: 10_000_000 }
      const refusal = readBody(new Request('http://localhost/', init), limits).catch(told)
      await vi.advanceTimersByTimeAsync(10_001)
      await expect(refusal).resolves.toMatchObject({ code: 'request_timeout' })
    } finally {
      vi.useRealTimers()
    }
  })

  it('asks for the memory of a declared body before it reads, and of another one as it grows', async () => {
    const taken: number[] = []
    const limits = {
      ...LIMITS,
      maxBytes: 1_000_000,
      takeMemory: (bytes: number) => void taken.push(bytes),
    }
    await readBody(sent(['1234'], { 'content-length': '4' }).request, limits)
    const pieces = Array<string>(20).fill('x'.repeat(10_000))
    await readBody(sent(pieces).request, limits)
    expect(taken).toEqual([4, 65_536, 65_536, 131_072])
    const none = () => {
      throw new ApiError('service_unavailable', 'none left')
    }
    const { request, state } = sent(['1234'], { 'content-length': '4' })
    const refused = readBody(request, { ...LIMITS, takeMemory: none })
    await expect(refused).rejects.toThrow('none left')
    expect(state.pulled).toBe(0)
  })
})
