import { describe, expect, it } from 'vitest'
import { hidesFrames } from '../../../src/worker/transcription/hidden-frames.ts'
import { mp3 } from '../../support/audio-samples.ts'

/** Frames of this length that begin with these bytes. */
function framesOf(count: number, length: number, head: readonly number[]): Buffer {
  const frame = Buffer.alloc(length)
  frame.set(head)
  return Buffer.concat(Array.from({ length: count }, () => frame))
}

function swapped(bytes: Buffer): Buffer {
  return Buffer.from(bytes).swap16()
}

const AC3 = [0x0b, 0x77, 0, 0, 0x04, 0x40]
const DTS = [0x7f, 0xfe, 0x80, 0x01, 0xfc, 0x3c, 0x3f, 0xf0]

describe('samples', () => {
  it.each<[what: string, bytes: Buffer]>([
    ['MP3', mp3(5).bytes],
    ['MP3 of 24 kbit/s at 16 kHz', framesOf(5, 108, [0xff, 0xf3, 0x38, 0xc4])],
    ['MP3 of 8 kbit/s at 8 kHz', framesOf(5, 72, [0xff, 0xe3, 0x18, 0xc4])],
    ['layer II of 64 kbit/s at 48 kHz', framesOf(5, 192, [0xff, 0xfd, 0x44, 0xc4])],
    ['layer I of 32 kbit/s at 44.1 kHz, padded', framesOf(5, 36, [0xff, 0xff, 0x12, 0xc4])],
    ['AC-3 of 48 kbit/s at 48 kHz', framesOf(5, 192, AC3)],
    ['AC-3 of 48 kbit/s at 44.1 kHz', framesOf(5, 208, [0x0b, 0x77, 0, 0, 0x44, 0x40])],
    ['AC-3 with its bytes swapped', swapped(framesOf(5, 192, AC3))],
    ['E-AC-3', framesOf(5, 256, [0x0b, 0x77, 0, 127, 0, 0x80])],
    ['DTS', framesOf(5, 1024, DTS)],
    ['DTS with its bytes swapped', swapped(framesOf(5, 1024, DTS))],
  ])('hide frames of %s', (_what, bytes) => {
    expect(hidesFrames(bytes)).toBe(true)
    expect(hidesFrames(Buffer.concat([Buffer.alloc(1_001, 0xff), bytes, Buffer.alloc(99)]))).toBe(
      true,
    )
    expect(hidesFrames(bytes.subarray(0, 4))).toBe(false)
  })

  it('of any kind hide none', () => {
    let state = 1
    const noise = Buffer.from(
      Array.from({ length: 500_000 }, () => {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
        return state >>> 24
      }),
    )
    for (const bytes of [
      noise,
      Buffer.alloc(0),
      Buffer.alloc(500_000, 0xff),
      Buffer.alloc(500_000, 0x7f),
    ]) {
      expect(hidesFrames(bytes)).toBe(false)
    }
  })
})
