import { describe, expect, it } from 'vitest'
import { jsonLines } from '../../../src/worker/http/json-lines.ts'

describe('the lines of events', () => {
  it('are JSON with the time of each event, and are written in one piece', () => {
    const written: string[] = []
    jsonLines((text) => written.push(text))([
      { event: 'request', fields: { request_id: 'r', status: 200 }, at: 0 },
      { event: 'settled', fields: {}, at: 0 },
      { event: 'settled', fields: { receipt: true }, at: 1_500 },
    ])
    expect(written).toEqual([
      [
        '{"at":"1970-01-01T00:00:00.000Z","event":"request","request_id":"r","status":200}',
        '{"at":"1970-01-01T00:00:00.000Z","event":"settled"}',
        '{"at":"1970-01-01T00:00:01.500Z","event":"settled","receipt":true}',
      ].join('\n'),
    ])
  })
})
