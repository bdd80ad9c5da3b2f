import { describe, expect, it } from 'vitest'
import { copyBytes } from '../../../src/protocol/bytes.ts'
import { audioOf } from '../../../src/worker/transcription/audio-type.ts'
import { measureSeconds } from '../../../src/worker/transcription/duration.ts'
import { webmSeconds } from '../../../src/worker/transcription/webm-duration.ts'
import {
  everySample,
  flac,
  mp3,
  recordedWebm,
  variableMp3,
  wav,
} from '../../support/audio-samples.ts'

const noPause = async () => {}

/** Enough that comparing each with all others takes minutes. */
const MANY_NAMES = Array.from({ length: 400_000 }, (_, index) => `${index}`)

/** FLAC's block of comments, each another genre. It is the last block. */
function genres(): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt32LE(MANY_NAMES.length, 4)
  const comments = MANY_NAMES.map((name) => {
    const length = Buffer.alloc(4)
    length.writeUInt32LE(`GENRE=${name}`.length)
    return Buffer.concat([length, Buffer.from(`GENRE=${name}`)])
  })
  const block = Buffer.concat([head, ...comments])
  const lengths = Buffer.alloc(4)
  lengths.writeUInt32BE((0x84 << 24) + block.length + 2 ** 32)
  return Buffer.concat([lengths, block])
}

/** An ID3 tag of version 2.4 with one frame of many artists. */
function artists(): Buffer {
  const text = Buffer.from(`\0${MANY_NAMES.join('\0')}`, 'latin1')
  const sizeOf = (size: number) =>
    Buffer.from([size >> 21, size >> 14, size >> 7, size].map((part) => part & 0x7f))
  const frame = Buffer.concat([Buffer.from('TPE1'), sizeOf(text.length), Buffer.alloc(2), text])
  return Buffer.concat([Buffer.from('ID3\x04\0\0', 'latin1'), sizeOf(frame.length), frame])
}

describe('a sample', () => {
  it.each(everySample().map((sample) => [sample.name, sample] as const))(
    '%s is typed by its bytes and measured',
    async (_name, { name, type, seconds, bytes }) => {
      const file = { bytes: copyBytes(bytes), name, type: undefined }
      const audio = audioOf(file)
      expect(audio.type).toBe(type)
      const measured = await measureSeconds(file.bytes, audio.container, noPause)
      expect(measured).toBeCloseTo(seconds, 1)
    },
  )
})

describe('a measurement', () => {
  it('ends without a result on a file that states no length', async () => {
    for (const container of ['wav', 'mp4', 'ogg', 'flac', 'webm', 'mpeg'] as const) {
      expect(await measureSeconds(new Uint8Array(5_000), container, noPause)).toBeUndefined()
      expect(await measureSeconds(new Uint8Array(), container, noPause)).toBeUndefined()
    }
  })

  it('lets others run while a long file is read', async () => {
    let pauses = 0
    const { bytes, seconds } = variableMp3(4_000)
    const measured = await measureSeconds(copyBytes(bytes), 'mpeg', async () => void pauses++)
    expect(measured).toBeCloseTo(seconds, 0)
    expect(pauses).toBeGreaterThan(5)
  })

  it('takes no longer where the file has hundreds of thousands of genres or artists', async () => {
    const plain = flac(2)
    const head = Buffer.from(plain.bytes.subarray(0, 42))
    head.writeUInt8(0, 4)
    const tagged = Buffer.concat([head, genres(), plain.bytes.subarray(42)])
    expect(await measureSeconds(copyBytes(tagged), 'flac', noPause)).toBeCloseTo(2, 1)
    const sound = mp3(100)
    const named = Buffer.concat([artists(), sound.bytes])
    const measured = await measureSeconds(copyBytes(named), 'mpeg', noPause)
    expect(measured).toBeCloseTo(sound.seconds, 1)
    expect(measured).toBe(await measureSeconds(copyBytes(sound.bytes), 'mpeg', noPause))
  })

  it('is not made of a FLAC file whose first block is of names, or of a file with more than eight tags in front', async () => {
    const { bytes } = flac(2)
    const swapped = Buffer.concat([
      Buffer.from('fLaC'),
      Buffer.from([4, 0, 0, 0]),
      bytes.subarray(4),
    ])
    expect(await measureSeconds(copyBytes(swapped), 'flac', noPause)).toBeUndefined()
    const tag = Buffer.from('ID3\x04\0\0\0\0\0\0', 'latin1')
    const behind = (tags: number) => {
      const file = Buffer.concat([...Array.from({ length: tags }, () => tag), mp3(100).bytes])
      return measureSeconds(copyBytes(file), 'mpeg', noPause)
    }
    expect(await behind(8)).toBeCloseTo(mp3(100).seconds, 1)
    expect(await behind(9)).toBeUndefined()
  })

  it('of a cut file is what its headers say or what is there, never an error', async () => {
    for (const { bytes } of everySample()) {
      const cut = copyBytes(bytes.subarray(0, bytes.length >> 1))
      const { container } = audioOf({ bytes: cut, name: '', type: undefined })
      const measured = await measureSeconds(cut, container, noPause)
      expect(measured === undefined || measured > 0).toBe(true)
    }
  })
})

describe('the walk over a WebM file', () => {
  it('finds the last block', async () => {
    expect(await webmSeconds(recordedWebm(31).bytes, noPause)).toBe(31)
  })

  it('ends on nonsense', async () => {
    expect(await webmSeconds(wav(1).bytes, noPause)).toBeUndefined()
    expect(await webmSeconds(new Uint8Array(1_000), noPause)).toBeUndefined()
    expect(await webmSeconds(new Uint8Array(1_000).fill(0xff), noPause)).toBeUndefined()
  })
})
