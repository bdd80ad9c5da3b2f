import { describe, expect, it } from 'vitest'
import { copyBytes } from '../../../../src/protocol/bytes.ts'
import { measureSeconds } from '../../../../src/worker/transcription/duration.ts'
import { oggOutline } from '../../../../src/worker/transcription/outline/ogg-outline.ts'
import { oggOpus } from '../../../support/audio-samples.ts'

const noPause = async () => {}
const NO_POSITION = 0xffff_ffff_ffff_ffffn

interface Page {
  readonly flags?: number
  readonly position?: bigint
  readonly serial?: number
  readonly body?: string
}

const FIRST = 2
const CONTINUED = 1

function page({ flags = 0, position = 0n, serial = 7, body = '' }: Page): Buffer {
  const head = Buffer.alloc(27)
  head.write('OggS')
  head.writeUInt8(flags, 5)
  head.writeBigUInt64LE(position, 6)
  head.writeUInt32LE(serial, 14)
  head.writeUInt8(body === '' ? 0 : 1, 26)
  const lengths = body === '' ? [] : [body.length]
  return Buffer.concat([head, Buffer.from(lengths), Buffer.from(body, 'latin1')])
}

/** Channels, no samples to skip, 48 kHz (RFC 7845, section 5.1). */
const OPUS_HEAD = `OpusHead\x01\x01\0\0\x80\xbb${'\0'.repeat(5)}`
const opus = (serial?: number) =>
  page({ flags: FIRST, body: OPUS_HEAD, ...(serial !== undefined && { serial }) })

const outlineOf = (pages: readonly Buffer[], pause = noPause) =>
  oggOutline(copyBytes(Buffer.concat(pages)), pause)
const secondsOf = (pages: readonly Buffer[]) =>
  measureSeconds(copyBytes(Buffer.concat(pages)), 'ogg', noPause)

describe('the outline of an Ogg file', () => {
  it('has the first page of each stream, and where it ends', async () => {
    const pages = [
      opus(1),
      opus(2),
      page({ serial: 1, position: 48_000n, body: 'sound' }),
      page({ serial: 2, position: 96_000n, body: 'other sound' }),
      page({ serial: 1, position: NO_POSITION, body: 'no packet ends here' }),
    ]
    const end = (serial: number, position: bigint) => page({ flags: 4, serial, position })
    expect(Buffer.from(await outlineOf(pages))).toEqual(
      Buffer.concat([opus(1), opus(2), end(1, 48_000n), end(2, 96_000n)]),
    )
  })

  it('is as short for a comment on a hundred thousand pages, for as many comments, and lets others run meanwhile', async () => {
    const comment = page({ body: 'OpusTags' })
    const more = Array.from({ length: 100_000 }, () => page({ flags: CONTINUED }))
    const pages = [opus(), comment, ...more, page({ position: 2_880_000n, body: 'sound' })]
    let pauses = 0
    expect((await outlineOf(pages, async () => void pauses++)).length).toBe(opus().length + 27)
    expect(pauses).toBe(5)
    expect(await secondsOf(pages)).toBeCloseTo(60, 3)
  })

  it('is empty where there are more than eight streams', async () => {
    const streams = (count: number) => Array.from({ length: count }, (_, serial) => opus(serial))
    expect((await outlineOf(streams(8))).length).toBe(8 * (opus().length + 27))
    expect((await outlineOf(streams(9))).length).toBe(0)
    expect(await secondsOf(streams(9))).toBeUndefined()
  })

  it('ends where no page follows, and at a page of a stream that has not begun', async () => {
    const sound = page({ position: 48_000n, body: 'sound' })
    const later = page({ position: 96_000n, body: 'sound' })
    const expected = Buffer.concat([opus(), page({ flags: 4, position: 48_000n })])
    const cutShort = [opus(), sound, Buffer.from('not a page'), later]
    expect(Buffer.from(await outlineOf(cutShort))).toEqual(expected)
    const foreign = page({ serial: 8, position: 96_000n, body: 'sound' })
    expect(Buffer.from(await outlineOf([opus(), sound, foreign, later]))).toEqual(expected)
    expect((await outlineOf([sound])).length).toBe(0)
    expect((await outlineOf([Buffer.from('OggS')])).length).toBe(0)
  })

  it('of a file whose last page is cut is measured by what that page says', async () => {
    const { bytes, seconds } = oggOpus(20)
    expect(await secondsOf([bytes.subarray(0, -1)])).toBeCloseTo(seconds, 1)
  })
})
