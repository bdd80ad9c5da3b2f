import { describe, expect, it } from 'vitest'
import { copyBytes } from '../../../../src/protocol/bytes.ts'
import { flacOutline } from '../../../../src/worker/transcription/outline/flac-outline.ts'
import { flac } from '../../../support/audio-samples.ts'

const outlineOf = (bytes: Buffer) => Buffer.from(flacOutline(copyBytes(bytes)))

describe('the outline of a FLAC file', () => {
  it('has the block that states the format, as the last one', () => {
    const { bytes } = flac(2)
    const expected = Buffer.from(bytes.subarray(0, 42))
    expected.writeUInt8(0x80, 4)
    expect(outlineOf(bytes)).toEqual(expected)
    const withMore = Buffer.from(bytes)
    withMore.writeUInt8(0, 4)
    expect(outlineOf(withMore)).toEqual(expected)
  })

  it('is empty where the first block is another, or not as long as it must be', () => {
    const { bytes } = flac(2)
    const changed = (offset: number, value: number) => {
      const copy = Buffer.from(bytes)
      copy.writeUInt8(value, offset)
      return outlineOf(copy).length
    }
    expect(changed(4, 0x84)).toBe(0)
    expect(changed(5, 1)).toBe(0)
    expect(changed(7, 33)).toBe(0)
    expect(outlineOf(bytes.subarray(0, 7)).length).toBe(0)
  })
})
