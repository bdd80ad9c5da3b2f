import { describe, expect, test } from 'vitest'
import { HandshakeWatch } from '../../../src/host/front/handshake-watch.ts'

/** A TLS record. */
function record(type: number, length: number): Uint8Array {
  const bytes = new Uint8Array(5 + length).fill(23)
  bytes.set([type, 3, 3, length >> 8, length & 255])
  return bytes
}

function joined(...parts: Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts))
}

const HELLO = record(22, 1_700)
const CHANGE_CIPHER = record(20, 1)
const FINISHED = record(23, 53)

describe('a client has ended its handshake', () => {
  test('with the first whole record of application data', () => {
    const watch = new HandshakeWatch()
    expect(watch.take(HELLO)).toBe(false)
    expect(watch.take(joined(CHANGE_CIPHER, FINISHED))).toBe(true)
  })

  test('however its bytes are cut', () => {
    const whole = joined(HELLO, CHANGE_CIPHER, HELLO, FINISHED)
    for (const size of [1, 2, 3, 5, 7, 100]) {
      const watch = new HandshakeWatch()
      for (let at = 0; at < whole.length; at += size) {
        const bytes = whole.subarray(at, at + size)
        expect(watch.take(bytes), `${size} at ${at}`).toBe(at + size >= whole.length)
      }
    }
  })
})

describe('it has not', () => {
  test.each([
    ['with a hello whose bytes look like application data', [HELLO, HELLO]],
    ['with the header of such a record alone', [HELLO, FINISHED.subarray(0, 5)]],
    ['with all of such a record but a byte', [HELLO, FINISHED.subarray(0, 57)]],
    ['with empty records of other types', [record(22, 0), record(20, 0), record(21, 2)]],
  ])('%s', (_name, parts) => {
    const watch = new HandshakeWatch()
    expect(parts.map((part) => watch.take(part))).toEqual(parts.map(() => false))
  })
})
