import type { Bytes } from '../../src/protocol/bytes.ts'

/** The two checksums of a FLAC frame (RFC 9639, section 9). */
function crc(bytes: readonly number[], poly: number, width: number): number {
  let value = 0
  const top = 1 << (width - 1)
  const mask = width === 16 ? 0xffff : 0xff
  for (const byte of bytes) {
    value ^= width === 16 ? byte << 8 : byte
    for (let bit = 0; bit < 8; bit++)
      value = (value & top ? (value << 1) ^ poly : value << 1) & mask
  }
  return value
}

/** The number of a frame, in the form of UTF-8 (section 9.1.5). */
function coded(n: number): number[] {
  if (n < 0x80) return [n]
  if (n < 0x800) return [0xc0 | (n >> 6), 0x80 | (n & 0x3f)]
  if (n < 0x10000) return [0xe0 | (n >> 12), 0x80 | ((n >> 6) & 0x3f), 0x80 | (n & 0x3f)]
  return [0xf0 | (n >> 18), 0x80 | ((n >> 12) & 0x3f), 0x80 | ((n >> 6) & 0x3f), 0x80 | (n & 0x3f)]
}

const BLOCK = 32_768
const RATE = 8_000

/** Silence as constant subframes: 4.1 seconds in a frame of 12 bytes or so, which decoders play. */
export function silentFlac(frames: number): { readonly bytes: Bytes; readonly seconds: number } {
  const info = [BLOCK >> 8, BLOCK & 255, BLOCK >> 8, BLOCK & 255, 0, 0, 0, 0, 0, 0]
  // 20 bits rate, 3 bits channels - 1, 5 bits depth - 1, 36 bits of samples.
  const packed = (BigInt(RATE) << 44n) | (0n << 41n) | (15n << 36n) | BigInt(frames * BLOCK)
  for (let shift = 56n; shift >= 0n; shift -= 8n) info.push(Number((packed >> shift) & 255n))
  info.push(...Array.from({ length: 16 }, () => 0))
  const out: number[] = [0x66, 0x4c, 0x61, 0x43, 0x80, 0, 0, 34, ...info]
  for (let frame = 0; frame < frames; frame++) {
    // Fixed block size 32,768 (code 15), 8 kHz (code 4), mono, 16 bits (code 4).
    const head = [0xff, 0xf8, 0xf4, 0x08, ...coded(frame)]
    const body = [...head, crc(head, 0x07, 8), 0x00, 0, 0]
    const check = crc(body, 0x8005, 16)
    out.push(...body, check >> 8, check & 255)
  }
  return { bytes: Uint8Array.from(out), seconds: (frames * BLOCK) / RATE }
}
