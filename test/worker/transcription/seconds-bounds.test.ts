import { describe, expect, it } from 'vitest'
import { copyBytes } from '../../../src/protocol/bytes.ts'
import { audioOf } from '../../../src/worker/transcription/audio-type.ts'
import { measureSeconds, statedSeconds } from '../../../src/worker/transcription/duration.ts'
import { minSeconds, maxSeconds } from '../../../src/worker/transcription/seconds-bounds.ts'
import { silentFlac } from '../../support/silent-flac.ts'
import {
  everySample,
  flac,
  mp3,
  recordedWebm,
  variableMp3,
  wav,
} from '../../support/audio-samples.ts'

const noPause = async () => {}

/** The offsets of fields in the sample's canonical header of 44 bytes. */
const WAV = { rate: 24, bytesPerSecond: 28, bits: 34, dataSize: 40 }

function changedWav(seconds: number, at: number, value: number): Uint8Array<ArrayBuffer> {
  const { bytes } = wav(seconds)
  bytes.writeUInt32LE(value, at)
  return copyBytes(bytes)
}

/** A FLAC header that claims some samples, and as many bytes of audio behind it. */
function falseFlac(samples: bigint, audioBytes: number): Uint8Array<ArrayBuffer> {
  const head = copyBytes(flac(1).bytes)
  new DataView(head.buffer).setBigUint64(18, (16_000n << 44n) | (15n << 36n) | samples)
  return copyBytes(Buffer.concat([head, Buffer.alloc(audioBytes, 0x55)]))
}

/** A minute of 8 kHz in one channel of 8 bits. */
const SLOW = { rate: 8_000, channels: 1, bits: 8 }
const HUGE_RATE = { rate: 192_000, channels: 8, bits: 32 }
const PCM = formatChunk(1, SLOW)
const HUGE = formatChunk(1, HUGE_RATE)

function chunk(id: string, content: Uint8Array): Buffer {
  const head = Buffer.from(`${id}\0\0\0\0`, 'latin1')
  head.writeUInt32LE(content.length, 4)
  return Buffer.concat([head, content])
}

function formatChunk(
  tag: number,
  { rate, channels, bits }: { rate: number; channels: number; bits: number },
  more: Uint8Array = Buffer.alloc(0),
): Buffer {
  const content = Buffer.alloc(16)
  content.writeUInt16LE(tag, 0)
  content.writeUInt16LE(channels, 2)
  content.writeUInt32LE(rate, 4)
  content.writeUInt16LE(bits, 14)
  return chunk('fmt ', Buffer.concat([content, more]))
}

/** The extensible format, of which the first two bytes of a GUID say what it is. */
function extensible(tag: number, validBits = 0): Buffer {
  const more = Buffer.alloc(24)
  more.writeUInt16LE(22, 0)
  more.writeUInt16LE(validBits, 2)
  more.writeUInt16LE(tag, 8)
  return formatChunk(0xfffe, HUGE_RATE, more)
}

function cutFormat(): Buffer {
  return chunk('fmt ', PCM.subarray(8, 22))
}

const empty = (count: number) => Array.from({ length: count }, () => chunk('JUNK', Buffer.alloc(0)))
const silent = (count: number) =>
  Array.from({ length: count }, () => chunk('data', Buffer.alloc(2)))
const frames = () => mp3(5).bytes
const adts = () => Buffer.from('fff1604000fffc'.repeat(3), 'hex')
const audioOfMinute = () => chunk('data', Buffer.alloc(480_000, 1))

function wavOf(parts: readonly Buffer[]): Uint8Array<ArrayBuffer> {
  return copyBytes(chunk('RIFF', Buffer.concat([Buffer.from('WAVE'), ...parts])))
}

describe('a false header', () => {
  it.each<[what: string, bytes: Uint8Array<ArrayBuffer>]>([
    ['a WAV with a false byte rate', changedWav(60, WAV.bytesPerSecond, 0x7fffffff)],
    ['a WAV whose audio says that it has no length', changedWav(60, WAV.dataSize, 0)],
    ['a WAV whose audio is longer than the file', changedWav(60, WAV.dataSize, 0xfffffff0)],
    ['a WAV with a count of samples of its own', withFact(wav(60).bytes, 160)],
  ])('does not shorten %s', async (_, bytes) => {
    const measured = await measureSeconds(bytes, 'wav', noPause)
    expect(Math.ceil(measured ?? 0)).toBe(60)
  })

  it.each<[what: string, parts: readonly Buffer[]]>([
    ['a second format, of another rate, behind the first', [PCM, HUGE, audioOfMinute()]],
    ['another format behind the audio', [PCM, audioOfMinute(), HUGE]],
    [
      'so many chunks that the audio is behind the last that is read',
      [HUGE, ...empty(64), audioOfMinute()],
    ],
    ['so many chunks that most of its audio is', [HUGE, ...silent(63), audioOfMinute()]],
    ['the extensible format for compressed audio', [extensible(0x55), audioOfMinute()]],
    [
      'the extensible format without what it is of',
      [formatChunk(0xfffe, HUGE_RATE), audioOfMinute()],
    ],
    ['samples of 32 bits of which 8 are valid', [extensible(1, 8), audioOfMinute()]],
    ['A-law of 32 bits', [formatChunk(6, { rate: 8_000, channels: 1, bits: 32 }), audioOfMinute()]],
    ['a format that ends before its sample size', [cutFormat(), audioOfMinute()]],
    ['MP3 in place of its samples', [HUGE, chunk('data', frames())]],
    ['AAC in place of its samples', [HUGE, chunk('data', adts())]],
    [
      'audio behind more zeros than chunks are read',
      [PCM, silent(1), Buffer.alloc(8_000), [HUGE], audioOfMinute()].flat(),
    ],
    [
      'MP3 behind some samples',
      [HUGE, chunk('data', Buffer.concat([Buffer.alloc(9_999, 7), frames()]))],
    ],
    ['MP3 in its second chunk of audio', [HUGE, ...silent(1), chunk('data', frames())]],
    [
      'MP3 in two chunks of audio, in each too little to be told',
      [HUGE, chunk('data', mp3(4).bytes), chunk('data', mp3(4).bytes)],
    ],
  ])('does not shorten what a WAV may last by %s', (_what, parts) => {
    expect(maxSeconds(wavOf(parts), 'wav')).toBeGreaterThanOrEqual(60)
  })

  it('does not make a FLAC of 20 MB that claims 160 samples last a second', async () => {
    const measured = await measureSeconds(falseFlac(160n, 20_000_000), 'flac', noPause)
    expect(measured).toBeGreaterThan(590)
  })

  it('does not make an MP3 shorter than at the highest bit rate', async () => {
    const bytes = copyBytes(Buffer.concat([falseXing(), variableMp3(12_000).bytes]))
    const measured = await measureSeconds(bytes, 'mpeg', noPause)
    expect(measured).toBeGreaterThan(70)
  })
})

describe('an honest file', () => {
  const samples = everySample().map((sample) => [sample.name, sample] as const)

  it.each(samples)('%s is not made longer, and may be as long as it is', async (_, sample) => {
    const bytes = copyBytes(sample.bytes)
    const { container } = audioOf({ bytes, name: sample.name, type: undefined })
    expect(minSeconds(bytes, container, {})).toBeLessThanOrEqual(sample.seconds)
    expect(maxSeconds(bytes, container)).toBeGreaterThanOrEqual(sample.seconds)
  })

  it('of whole seconds is billed for no second more', async () => {
    for (const seconds of [1, 7, 60, 599]) {
      const measured = await measureSeconds(copyBytes(wav(seconds).bytes), 'wav', noPause)
      expect(Math.ceil(measured ?? 0)).toBe(seconds)
    }
  })

  it('with a large picture in front is not made longer for it', () => {
    const { bytes, seconds } = variableMp3(200)
    const size = 4_000_000
    const digits = [21, 14, 7, 0].map((shift) => (size >> shift) & 0x7f)
    const tag = Buffer.concat([Buffer.from('ID3\x04\0\0'), Buffer.from(digits), Buffer.alloc(size)])
    const tagged = copyBytes(Buffer.concat([tag, bytes]))
    expect(minSeconds(tagged, 'mpeg', {})).toBeLessThanOrEqual(seconds)
  })

  it('whose FLAC blocks hold a picture is not made longer for it', () => {
    const marker = Buffer.from('fLaC')
    const picture = Buffer.concat([Buffer.from([0x86, 0x0f, 0x42, 0x40]), Buffer.alloc(1_000_000)])
    const bytes = copyBytes(Buffer.concat([marker, picture, Buffer.alloc(32_000)]))
    const format = { sampleRate: 16_000, numberOfChannels: 1, bitsPerSample: 16 }
    expect(minSeconds(bytes, 'flac', format)).toBeLessThanOrEqual(1)
  })
})

describe('the longest that a file may be', () => {
  it.each<[what: string, parts: readonly Buffer[]]>([
    ['the extensible format of PCM', [extensible(1), chunk('data', Buffer.alloc(6_144_000))]],
    ['the valid bits of its samples', [extensible(1, 32), chunk('data', Buffer.alloc(6_144_000))]],
    ['zeros behind it', [PCM, chunk('data', Buffer.alloc(8_000)), Buffer.alloc(8_003)]],
    ['the same format twice', [HUGE, HUGE, chunk('data', Buffer.alloc(6_144_000))]],
    ['A-law', [formatChunk(6, SLOW), chunk('data', Buffer.alloc(8_000))]],
    ['many chunks', [PCM, ...empty(60), chunk('data', Buffer.alloc(8_000))]],
  ])('is exact for a WAV with %s', (_what, parts) => {
    expect(maxSeconds(wavOf(parts), 'wav')).toBeCloseTo(2)
  })

  it('is exact for uncompressed audio, but for what providers round up', () => {
    expect(maxSeconds(copyBytes(wav(90).bytes), 'wav')).toBeCloseTo(91)
  })

  it('is that of the lowest bit rate elsewhere, and a minute at least', () => {
    expect(maxSeconds(new Uint8Array(750_000), 'ogg')).toBe(1_000)
    expect(maxSeconds(copyBytes(mp3(10).bytes), 'mpeg')).toBe(60)
  })

  it('covers silence, which takes next to nothing, where its head says how long it is', async () => {
    const { bytes, seconds } = silentFlac(1_000)
    const stated = await statedSeconds(bytes, 'flac', noPause)
    expect(stated).toBe(4_096)
    expect(maxSeconds(bytes, 'flac', stated)).toBe(seconds + 1)
    expect(maxSeconds(bytes, 'flac')).toBe(60)
  })

  it('is no longer than silence can be, whatever a damaged head says', () => {
    expect(maxSeconds(new Uint8Array(1_500), 'ogg', 1e12)).toBe(1_000)
  })

  it('is what a file states, unless its size bounds it', async () => {
    const files = [...everySample(), recordedWebm(31)]
    const stated = await Promise.all(
      files.map(async ({ name, bytes: from }) => {
        const bytes = copyBytes(from)
        const { container } = audioOf({ bytes, name, type: undefined })
        return [container, await statedSeconds(bytes, container, noPause)] as const
      }),
    )
    expect(stated).toEqual([
      ['wav', undefined],
      ['mpeg', undefined],
      ['mpeg', undefined],
      ['flac', 5],
      ['ogg', 20],
      ['mp4', 7],
      ['mp4', 6],
      // Its only block begins at once.
      ['webm', undefined],
      ['webm', 12],
      ['webm', 31],
    ])
  })

  it('is that of the lowest bit rate for a WAV without a stated length', () => {
    for (const bytes of [new Uint8Array(75_000), changedWav(1, WAV.rate, 0)]) {
      expect(maxSeconds(bytes, 'wav')).toBe(Math.max(60, (8 * bytes.length) / 6_000))
    }
  })
})

/** The count of samples that a chunk of its own claims. */
function withFact(bytes: Buffer, samples: number): Uint8Array<ArrayBuffer> {
  const fact = Buffer.from('fact\x04\0\0\0\0\0\0\0', 'latin1')
  fact.writeUInt32LE(samples, 8)
  return copyBytes(Buffer.concat([bytes.subarray(0, 36), fact, bytes.subarray(36)]))
}

/** A first frame of layer III whose Xing header claims two frames in all. */
function falseXing(): Buffer {
  const frame = Buffer.alloc(417)
  frame.set([0xff, 0xfb, 0x90, 0xc4])
  frame.write('Xing', 4 + 17, 'latin1')
  frame.writeUInt32BE(1, 4 + 17 + 4)
  frame.writeUInt32BE(2, 4 + 17 + 8)
  return frame
}
