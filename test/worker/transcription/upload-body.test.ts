import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { ApiError } from '../../../src/worker/http/errors.ts'
import {
  checkUploadHeaders,
  freeUpload,
  readUpload,
} from '../../../src/worker/transcription/upload-body.ts'
import { refusalOf } from '../../support/refusal.ts'

const FORM = 'multipart/form-data; boundary=b'
const MIB = 1024 * 1024

function room(headers: Record<string, string>): number {
  return checkUploadHeaders(new Headers({ 'content-type': FORM, ...headers })).room
}

function refused(headers: Record<string, string>) {
  const { code, message, param } = refusalOf(() => room(headers))
  return [code, param, message]
}

function upload(body: BodyInit | null): Request {
  return new Request('https://router.example/', { method: 'POST', body })
}

const now = () => 0

describe('the headers of an upload', () => {
  it('say how much room it needs, one byte for its end included', () => {
    expect(room({ 'content-length': '1000' })).toBe(1001)
    expect(room({})).toBe(26 * MIB + 1)
  })

  it.each([
    FORM,
    'Multipart/Form-Data;boundary="b"',
    'multipart/form-data; charset=utf-8; boundary=b; x=y',
  ])('may be spelled %s', (type) => expect(room({ 'content-type': type })).toBeGreaterThan(0))

  it.each([
    'multipart/form-data',
    'multipart/form-data; boundary=',
    'multipart/form-data; x=y',
    '',
  ])('are refused as %s', (type) => {
    const message = 'The body must be multipart/form-data, with its boundary in the Content-Type.'
    const refusal = ['invalid_content_type', 'Content-Type', message]
    expect(refused({ 'content-type': type })).toEqual(refusal)
  })

  it('are refused for a body that is too large or compressed', () => {
    const large = { 'content-length': String(26 * MIB + 1) }
    const message = 'The file is larger than 25 MiB.'
    expect(refused(large)).toEqual(['upload_too_large', 'file', message])
    expect(refused({ 'content-encoding': 'gzip' })[0]).toBe('invalid_request_error')
  })
})

describe('an upload', () => {
  it('is read whole, and its memory can be given back', async () => {
    const body = await readUpload(upload(utf8('abc')), 1000, { now })
    expect(Buffer.from(body).toString()).toBe('abc')
    expect(body.buffer.byteLength).toBe(1000)
    const { buffer } = body
    freeUpload(body)
    expect(buffer.detached).toBe(true)
  })

  it('without a body is empty', async () => {
    expect(await readUpload(upload(null), 1000, { now })).toHaveLength(0)
  })

  it('is refused once it fills the room that was kept for its end', async () => {
    const request = upload(utf8('abcd'))
    const error: unknown = await readUpload(request, 4, { now }).catch((reason: unknown) => reason)
    if (!(error instanceof ApiError)) throw new Error('not refused')
    expect([error.code, error.message]).toEqual([
      'upload_too_large',
      'The file is larger than 25 MiB.',
    ])
    expect(request.body?.locked).toBe(false)
  })

  it('is refused when it breaks off', async () => {
    const body = new ReadableStream({ type: 'bytes', pull: (c) => c.error(new Error('gone')) })
    await expect(readUpload({ body }, 4, { now })).rejects.toMatchObject({
      code: 'invalid_multipart',
      message: 'The upload broke off.',
    })
  })

  const SLOW = { code: 'request_timeout', message: 'The request body came too slowly.' }

  /** A body that gives so many bytes at once and then no more. */
  function halting(bytes: number): ReadableStream {
    return new ReadableStream({
      type: 'bytes',
      start: (controller) => void (bytes > 0 && controller.enqueue(new Uint8Array(bytes))),
      pull: () => new Promise(() => {}),
    })
  }

  /** Reads with a fake clock; answers how long it waited, in ms, and with what it ended. */
  async function givenUp(body: ReadableStream) {
    const begun = Date.now()
    const outcome: { error?: unknown } = {}
    void readUpload({ body }, MIB, { now: Date.now }).catch(
      (reason: unknown) => (outcome.error = reason),
    )
    while (outcome.error === undefined) await vi.advanceTimersByTimeAsync(100)
    return { waited: Date.now() - begun, ...outcome }
  }

  describe('that stops coming', () => {
    beforeEach(() => void vi.useFakeTimers())
    afterEach(() => void vi.useRealTimers())

    it.each([
      ['ten seconds after its beginning when nothing came', 0, 10_000],
      ['one second later for every 32 KB', 64_000, 12_000],
      ['twenty seconds after the last byte however much came before', 960_000, 20_000],
    ])('is refused %s', async (_, bytes, ms) => {
      const body = halting(bytes)
      const { waited, error } = await givenUp(body)
      expect(error).toMatchObject(SLOW)
      expect(waited).toBe(ms)
    })
  })

  it('that trickles holds its room for seconds, not for minutes', async () => {
    vi.useFakeTimers()
    const timer: { stop?: () => void } = {}
    const body = new ReadableStream({
      type: 'bytes',
      start: (controller) => {
        const drip = setInterval(() => controller.enqueue(new Uint8Array(1_000)), 1_000)
        timer.stop = () => clearInterval(drip)
      },
      cancel: () => timer.stop?.(),
    })
    const outcome = readUpload({ body }, MIB, { now: Date.now }).catch((reason: unknown) => reason)
    await vi.advanceTimersByTimeAsync(10_500)
    expect(await outcome).toMatchObject(SLOW)
    vi.useRealTimers()
  })
})
