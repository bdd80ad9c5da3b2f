/** Small audio files made in code: silence, in every container that the router accepts. */

export interface AudioSample {
  /** A file name with the usual extension. */
  readonly name: string
  /** The container's media type. */
  readonly type: string
  readonly seconds: number
  readonly bytes: Buffer<ArrayBuffer>
}

const RATE = 16_000

export function wav(seconds: number): AudioSample {
  const data = Buffer.alloc(seconds * RATE * 2)
  const format = Buffer.alloc(16)
  format.writeUInt16LE(1, 0)
  format.writeUInt16LE(1, 2)
  format.writeUInt32LE(RATE, 4)
  format.writeUInt32LE(RATE * 2, 8)
  format.writeUInt16LE(2, 12)
  format.writeUInt16LE(16, 14)
  const chunks = [Buffer.from('WAVE'), riffChunk('fmt ', format), riffChunk('data', data)]
  return sample('wav', 'audio/wav', seconds, riffChunk('RIFF', Buffer.concat(chunks)))
}

function riffChunk(id: string, body: Buffer): Buffer<ArrayBuffer> {
  const size = Buffer.alloc(4)
  size.writeUInt32LE(body.length)
  return Buffer.concat([Buffer.from(id), size, body])
}

const BITS_128K = 9
const BITS_64K = 5

/** A frame of layer III at 44.1 kHz: 1,152 samples of silence. */
function mp3Frame(rate: number, length: number): Buffer<ArrayBuffer> {
  const frame = Buffer.alloc(length)
  frame.set([0xff, 0xfb, rate << 4, 0xc4])
  return frame
}

export function mp3(frames: number): AudioSample {
  const frame = mp3Frame(BITS_128K, 417)
  const bytes = Buffer.concat(Array.from({ length: frames }, () => frame))
  return sample('mp3', 'audio/mpeg', (frames * 1152) / 44_100, bytes)
}

/** Frames of changing bit rate and no table of contents: every one of them has to be read. */
export function variableMp3(frames: number): AudioSample {
  const pair = Buffer.concat([mp3Frame(BITS_128K, 417), mp3Frame(BITS_64K, 208)])
  const bytes = Buffer.concat(Array.from({ length: frames / 2 }, () => pair))
  return sample('mp3', 'audio/mpeg', (frames * 1152) / 44_100, bytes)
}

export function flac(seconds: number): AudioSample {
  const info = Buffer.alloc(34)
  info.writeUInt16BE(4096, 0)
  info.writeUInt16BE(4096, 2)
  // 20 bits of rate, 3 of channels - 1, 5 of bits - 1, 36 of samples
  info.writeBigUInt64BE((BigInt(RATE) << 44n) | (15n << 36n) | BigInt(seconds * RATE), 10)
  const header = Buffer.from([0x80, 0, 0, info.length])
  const bytes = Buffer.concat([Buffer.from('fLaC'), header, info, Buffer.alloc(64)])
  return sample('flac', 'audio/flac', seconds, bytes)
}

const OPUS_RATE = 48_000

export function oggOpus(seconds: number): AudioSample {
  const head = Buffer.from('OpusHead\x01\x01\0\0\0\0\0\0\0\0\0', 'latin1')
  head.writeUInt32LE(OPUS_RATE, 12)
  const tags = Buffer.concat([Buffer.from('OpusTags'), Buffer.alloc(8)])
  const packet = Buffer.from([0xf8, 0xff, 0xfe])
  const pages = [oggPage(2, 0, 0, head), oggPage(0, 0, 1, tags)]
  for (let second = 1; second <= seconds; second++) {
    const last = second === seconds ? 4 : 0
    pages.push(oggPage(last, second * OPUS_RATE, second + 1, packet))
  }
  return sample('ogg', 'audio/ogg', seconds, Buffer.concat(pages))
}

function oggPage(
  flags: number,
  granule: number,
  sequence: number,
  packet: Buffer,
): Buffer<ArrayBuffer> {
  const header = Buffer.alloc(28)
  header.write('OggS')
  header[5] = flags
  header.writeBigUInt64LE(BigInt(granule), 6)
  header.writeUInt32LE(7, 14)
  header.writeUInt32LE(sequence, 18)
  header[26] = 1
  header[27] = packet.length
  const page = Buffer.concat([header, packet])
  page.writeUInt32LE(oggChecksum(page), 22)
  return page
}

/** CRC-32 with polynomial 04c11db7, not reflected (RFC 3533). */
function oggChecksum(page: Buffer): number {
  let sum = 0
  for (const byte of page) {
    sum ^= byte << 24
    for (let bit = 0; bit < 8; bit++) sum = sum < 0 ? (sum << 1) ^ 0x04c11db7 : sum << 1
  }
  return sum >>> 0
}

/** A recording in fragments, whose header states no duration: one of each second, of samples of 20 ms. */
export function fragmentedM4a(seconds: number): AudioSample {
  const fragment = box('moof', box('traf', box('tfhd', words(0, 1)), fragmentRun(50, RATE / 50)))
  const parts = Array.from({ length: seconds }, () => [fragment, box('mdat', Buffer.alloc(50))])
  const bytes = Buffer.concat([m4a(0).bytes, ...parts.flat()])
  return sample('m4a', 'audio/m4a', seconds, bytes)
}

/** The samples of a fragment, each with its duration and a size of one byte. */
function fragmentRun(samples: number, duration: number): Buffer<ArrayBuffer> {
  const fields = Array.from({ length: samples }, () => [duration, 1])
  return box('trun', words(0x301, samples, 0, ...fields.flat()))
}

export function m4a(seconds: number): AudioSample {
  const movieHeader = box('mvhd', words(0, 0, 0, 1000, seconds * 1000), Buffer.alloc(80))
  const mediaHeader = box('mdhd', words(0, 0, 0, RATE, seconds * RATE, 0x55c40000))
  const handler = box('hdlr', words(0, 0), Buffer.from('soun'), Buffer.alloc(13))
  const entry = box('mp4a', words(0, 1, 0, 0, (1 << 16) | 16, 0, RATE * 65536))
  const tables = box('stbl', box('stsd', words(0, 1), entry), box('stts', words(0, 0)))
  const media = box('mdia', mediaHeader, handler, box('minf', tables))
  const track = box(
    'trak',
    box('tkhd', words(7, 0, 0, 1, 0, seconds * 1000), Buffer.alloc(60)),
    media,
  )
  const bytes = Buffer.concat([
    box('ftyp', Buffer.from('M4A \0\0\0\0M4A isom')),
    box('moov', movieHeader, track),
    box('mdat', Buffer.alloc(256)),
  ])
  return sample('m4a', 'audio/m4a', seconds, bytes)
}

/** A box of an MP4 file (ISO/IEC 14496-12). */
export function box(type: string, ...parts: readonly Buffer[]): Buffer<ArrayBuffer> {
  const body = Buffer.concat(parts)
  return Buffer.concat([words(body.length + 8), Buffer.from(type), body])
}

/** Numbers of 32 bits, big-endian. */
export function words(...values: readonly number[]): Buffer<ArrayBuffer> {
  const bytes = Buffer.alloc(4 * values.length)
  values.forEach((value, i) => bytes.writeUInt32BE(value, 4 * i))
  return bytes
}

/** As a muxer writes it: sizes everywhere, and the duration in front. */
function webm(seconds: number): AudioSample {
  const duration = Buffer.alloc(8)
  duration.writeDoubleBE(seconds * 1000)
  const info = element(
    '1549a966',
    element('2ad7b1', Buffer.from('0f4240', 'hex')),
    element('4489', duration),
  )
  const cluster = element('1f43b675', element('e7', Buffer.from([0])), simpleBlock(0))
  const segment = element('18538067', info, OPUS_TRACK, cluster)
  return sample('webm', 'audio/webm', seconds, Buffer.concat([WEBM_HEADER, segment]))
}

/** As a browser records it: no duration, and nothing has a size until it has ended. */
export function recordedWebm(seconds: number): AudioSample {
  const parts = [WEBM_HEADER, sizeless('18538067'), element('1549a966'), OPUS_TRACK]
  for (let second = 0; second <= seconds; second += 10) {
    const start = words(second * 1000)
    const offset = Math.min(10, seconds - second) * 1000
    parts.push(sizeless('1f43b675'), element('e7', start), simpleBlock(0), simpleBlock(offset))
  }
  return sample('webm', 'audio/webm', seconds, Buffer.concat(parts))
}

const WEBM_HEADER = element('1a45dfa3', element('4282', Buffer.from('webm')))
const OPUS_TRACK = element(
  '1654ae6b',
  element(
    'ae',
    element('d7', Buffer.from([1])),
    element('83', Buffer.from([2])),
    element('86', Buffer.from('A_OPUS')),
  ),
)

function simpleBlock(offset: number): Buffer<ArrayBuffer> {
  return element('a3', Buffer.from([0x81, offset >> 8, offset & 0xff, 0x80, 0xf8, 0xff, 0xfe]))
}

/** The head of an element that says it does not know its size. */
function sizeless(id: string): Buffer<ArrayBuffer> {
  return Buffer.from(`${id}01ffffffffffffff`, 'hex')
}

/** An EBML element with a size of eight bytes. */
function element(id: string, ...parts: readonly Buffer[]): Buffer<ArrayBuffer> {
  const body = Buffer.concat(parts)
  const size = Buffer.alloc(8)
  size.writeBigUInt64BE((1n << 56n) | BigInt(body.length))
  return Buffer.concat([Buffer.from(id, 'hex'), size, body])
}

/** One of each container. */
export function everySample(): readonly AudioSample[] {
  return [
    wav(3),
    mp3(100),
    variableMp3(200),
    flac(5),
    oggOpus(20),
    m4a(7),
    fragmentedM4a(6),
    webm(9),
    recordedWebm(12),
  ]
}

function sample(
  extension: string,
  type: string,
  seconds: number,
  bytes: Buffer<ArrayBuffer>,
): AudioSample {
  return { name: `sample.${extension}`, type, seconds, bytes }
}
