import { describe, expect, it } from 'vitest'
import { copyBytes } from '../../../../src/protocol/bytes.ts'
import { measureSeconds } from '../../../../src/worker/transcription/duration.ts'
import { mp4Outline } from '../../../../src/worker/transcription/outline/mp4-outline.ts'
import { box, fragmentedM4a, m4a, words } from '../../../support/audio-samples.ts'

const noPause = async () => {}
const outlineOf = (...boxes: readonly Buffer[]) =>
  Buffer.from(mp4Outline(copyBytes(Buffer.concat(boxes))))
const secondsOf = (...boxes: readonly Buffer[]) =>
  measureSeconds(copyBytes(Buffer.concat(boxes)), 'mp4', noPause)

const FTYP = box('ftyp', Buffer.from('M4A \0\0\0\0M4A isom'))
const inFragment = (run: Buffer) => box('moof', box('traf', box('tfhd', words(0, 1)), run))

describe('the outline of an MP4 file', () => {
  it('has the boxes that state duration and format, and no others', () => {
    const names = box('udta', box('meta', words(0), box('ilst', Buffer.alloc(100_000))))
    const movie = m4a(7).bytes
    const outline = outlineOf(movie, box('free', Buffer.alloc(1_000)), box('moov', names))
    const text = outline.toString('latin1')
    for (const kept of ['ftyp', 'mvhd', 'tkhd', 'mdhd', 'hdlr', 'stsd'])
      expect(text).toContain(kept)
    for (const dropped of ['mdat', 'stts', 'free', 'udta', 'ilst']) {
      expect(text).not.toContain(dropped)
    }
  })

  it('has sizes that fit what is in it, also of boxes that state theirs in 64 bits or not at all', () => {
    const inner = box('mvhd', Buffer.alloc(12))
    const long = Buffer.concat([words(1), Buffer.from('moov'), words(0, 16 + inner.length), inner])
    const endless = Buffer.concat([words(0), Buffer.from('moov'), inner])
    expect(outlineOf(FTYP, long)).toEqual(Buffer.concat([FTYP, box('moov', inner)]))
    expect(outlineOf(FTYP, endless)).toEqual(Buffer.concat([FTYP, box('moov', inner)]))
    expect(outlineOf(FTYP, box('free'), box('moov', inner, words(3)))).toEqual(
      Buffer.concat([FTYP, box('moov', inner)]),
    )
  })

  it('is of a fragmented recording what its fragments add up to', async () => {
    const { bytes, seconds } = fragmentedM4a(30)
    expect(await secondsOf(bytes)).toBeCloseTo(seconds, 1)
    expect(outlineOf(bytes).length).toBeLessThan(bytes.length)
  })

  it.each([
    ['four thousand million samples without a field', box('trun', words(0, 4_000_000_000, 0))],
    ['one sample more than it has', box('trun', words(0x100, 3, 320, 320))],
    ['one sample less than it has', box('trun', words(0x100, 1, 320, 320))],
    ['no samples, and has no count', box('trun', words(0))],
  ])('is empty where a fragment counts %s', async (_what, run) => {
    expect(outlineOf(FTYP, inFragment(run)).length).toBe(0)
    expect(await secondsOf(m4a(0).bytes, inFragment(run))).toBeUndefined()
  })

  it('is empty where there are more boxes than a recorder writes, or longer ones', () => {
    const empty = box('free')
    const many = Buffer.alloc(100_000 * empty.length, empty)
    expect(outlineOf(FTYP, many.subarray(0, -empty.length)).length).toBe(FTYP.length)
    expect(outlineOf(FTYP, many).length).toBe(0)
    expect(
      outlineOf(FTYP, box('moov', box('mvhd', Buffer.alloc(64 * 1024)))).length,
    ).toBeGreaterThan(0)
    expect(outlineOf(FTYP, box('moov', box('mvhd', Buffer.alloc(64 * 1024 + 1)))).length).toBe(0)
    const run = box('trun', words(0x100, 200_000), Buffer.alloc(800_000))
    expect(outlineOf(FTYP, ...Array.from({ length: 5 }, () => inFragment(run))).length).toBe(
      FTYP.length + 5 * inFragment(run).length,
    )
    expect(outlineOf(FTYP, ...Array.from({ length: 6 }, () => inFragment(run))).length).toBe(0)
    const longRun = box('trun', words(0x100, 300_000), Buffer.alloc(1_200_000))
    expect(outlineOf(FTYP, inFragment(longRun)).length).toBe(0)
  })

  it('ends where a box says that it is shorter than its own head', () => {
    expect(outlineOf(FTYP, words(7), Buffer.from('moov'))).toEqual(FTYP)
    expect(outlineOf(FTYP, words(1), Buffer.from('moov'), words(0, 15))).toEqual(FTYP)
    expect(outlineOf(FTYP, words(1), Buffer.from('moov'))).toEqual(FTYP)
  })
})
