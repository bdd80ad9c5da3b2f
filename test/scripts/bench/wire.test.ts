import { describe, expect, it } from 'vitest'
import { AnswerReader } from '../../../scripts/bench/answer-reader.ts'
import {
  behaviourOf,
  DELTA_FRAME,
  STREAM_END,
  STREAM_START,
  WHOLE_ANSWER,
} from '../../../scripts/bench/mock-answers.ts'
import { RequestReader } from '../../../scripts/bench/request-reader.ts'
import { chatBody, chatCaller, requestText } from '../../../scripts/bench/system.ts'

const STREAM = Buffer.concat([STREAM_START, DELTA_FRAME, DELTA_FRAME, STREAM_END])

function readInPieces(bytes: Buffer, size: number) {
  const reader = new AnswerReader()
  let progress = reader.push(Buffer.alloc(0))
  for (let at = 0; at < bytes.length; at += size) {
    progress = reader.push(bytes.subarray(at, at + size))
  }
  return progress
}

describe('what the benchmark reads off the wire', () => {
  it.each([1, 2, 3, 7, 64, 1_000, 100_000])('sees a whole answer in pieces of %i bytes', (size) => {
    expect(readInPieces(WHOLE_ANSWER, size)).toMatchObject({ status: 200, complete: true })
  })

  it.each([64, 65, 200, 100_000])(
    'counts every event of a stream in pieces of %i bytes',
    (size) => {
      const progress = readInPieces(STREAM, size)
      expect(progress).toMatchObject({ status: 200, complete: true, done: true, frames: 6 })
    },
  )

  it('does not take a stream for complete that breaks off', () => {
    const cut = STREAM.subarray(0, STREAM.length - STREAM_END.length)
    expect(readInPieces(cut, 100)).toMatchObject({ complete: false, done: false })
  })

  it.each([1, 10, 1_000])('finds a request in pieces of %i bytes', (size) => {
    const body = chatBody('paced-8x20', { stream: true })
    const bytes = Buffer.from(
      requestText(chatCaller({ authorization: 'Bearer k' }), body),
      'latin1',
    )
    const reader = new RequestReader()
    const found = []
    for (let at = 0; at < bytes.length; at += size) {
      const request = reader.push(bytes.subarray(at, at + size))
      if (request !== undefined) found.push(request)
    }
    expect(found).toHaveLength(1)
    expect(found[0]?.target).toBe('/v1/chat/completions')
    expect(found[0]?.body.toString()).toBe(body)
  })

  it('finds a chunked request', () => {
    const head = 'POST /v1/x HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n'
    const request = new RequestReader().push(Buffer.from(`${head}5\r\n12345\r\n0\r\n\r\n`))
    expect(request?.target).toBe('/v1/x')
  })

  it('reads the behaviour off the model, and answers anything else whole', () => {
    const of = (model: string) => behaviourOf(Buffer.from(JSON.stringify({ messages: [], model })))
    expect(of('paced-250x20')).toEqual({ kind: 'paced', frames: 250, everyMs: 20 })
    expect(of('line-8192x0')).toEqual({ kind: 'line', kibibytes: 8192 })
    expect(of('whole')).toEqual({ kind: 'whole' })
    expect(of('another')).toEqual({ kind: 'whole' })
  })
})
