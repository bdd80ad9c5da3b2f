import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { concatBytes, utf8 } from '../../../src/protocol/bytes.ts'
import { ByteSink } from '../../../src/worker/http/byte-sink.ts'

describe('ByteSink', () => {
  it('puts bytes and texts of any length together, whatever room it was given', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 200 })
    const piece = fc.oneof(text, fc.uint8Array({ maxLength: 200 }))
    fc.assert(
      fc.property(fc.array(piece), fc.nat(50), (pieces, room) => {
        const sink = new ByteSink(room)
        for (const part of pieces) {
          if (typeof part === 'string') sink.text(part)
          else sink.copy(concatBytes(utf8('<'), part, utf8('>')), 1, part.length + 1)
        }
        const expected = pieces.map((part) => (typeof part === 'string' ? utf8(part) : part))
        expect(sink.finish()).toEqual(concatBytes(...expected))
      }),
    )
  })
})
