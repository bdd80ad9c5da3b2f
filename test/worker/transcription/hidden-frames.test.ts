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
const DTS_14 = [0x1f, 0xff, 0xe8, 0x00, 0x07, 0xf1]
const DTS_EXTENSION = [0x64, 0x58, 0x20, 0x25]
/** 256 bytes each. */
const ADTS = [0xff, 0xf1, 0x60, 0x40, 0x20, 0x1f, 0xfc]
const LOAS = [0x56, 0xe0, 0xfd]
const TRUEHD = [0xf0, 0x80, 0x00, 0x00, 0xf8, 0x72, 0x6f, 0xba]

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
    ['AAC in ADTS', framesOf(20, 256, ADTS)],
    ['AAC in LOAS', framesOf(20, 256, LOAS)],
    ['DTS', framesOf(4, 1024, DTS)],
    ['DTS with its bytes swapped', swapped(framesOf(4, 1024, DTS))],
    ['DTS with two bytes behind each frame', framesOf(4, 1026, DTS)],
    ['DTS of 14 bits', framesOf(4, 1024, DTS_14)],
    ['DTS of 14 bits with its bytes swapped', swapped(framesOf(4, 1024, DTS_14))],
    ['the extension of DTS alone', framesOf(4, 1024, DTS_EXTENSION)],
    ['TrueHD', framesOf(1, 256, TRUEHD)],
  ])('hide frames of %s', (_what, bytes) => {
    expect(hidesFrames(bytes)).toBe(true)
    expect(hidesFrames(Buffer.concat([Buffer.alloc(1_001, 0xff), bytes, Buffer.alloc(99)]))).toBe(
      true,
    )
    expect(hidesFrames(bytes.subarray(0, 4))).toBe(false)
  })

  it.each<[what: string, head: readonly number[]]>([
    ['ADTS', ADTS],
    ['LOAS', LOAS],
  ])('hide AAC in %s if they begin with three frames', (_what, head) => {
    expect(hidesFrames(framesOf(3, 256, head))).toBe(true)
    expect(hidesFrames(framesOf(2, 256, head))).toBe(false)
    expect(hidesFrames(Buffer.concat([Buffer.alloc(2), framesOf(19, 256, head)]))).toBe(false)
  })

  it('of any kind hide none', () => {
    let state = 1
    const random = () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      return state >>> 24
    }
    const noise = Buffer.from(Array.from({ length: 500_000 }, random))
    const quiet = Buffer.from(
      Int16Array.from({ length: 1_500_000 }, () => (random() % 41) - 20).buffer,
    )
    const square = Buffer.from(
      Int16Array.from({ length: 250_000 }, (_, i) => (i % 16 < 8 ? 0x7ffe : -0x7fff)).buffer,
    )
    for (const bytes of [
      noise,
      quiet,
      square,
      Buffer.alloc(0),
      Buffer.alloc(500_000, 0xff),
      Buffer.alloc(500_000, 0x7f),
    ]) {
      expect(hidesFrames(bytes)).toBe(false)
    }
  })
})
