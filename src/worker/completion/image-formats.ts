/** Checks by its first bytes whether data has a format. */
type FormatCheck = (head: Uint8Array) => boolean

/** Bytes as text, one character each. */
function ascii(head: Uint8Array, start: number, end: number): string {
  return String.fromCharCode(...head.subarray(start, end))
}

function startsWith(...signatures: readonly (readonly number[])[]): FormatCheck {
  return (head) =>
    signatures.some((signature) => signature.every((byte, index) => head[index] === byte))
}

const isPng = startsWith([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const isJpeg = startsWith([0xff, 0xd8, 0xff])
/** Both byte orders, classic and BigTIFF. */
const isTiff = startsWith(
  [0x49, 0x49, 0x2a, 0x00],
  [0x4d, 0x4d, 0x00, 0x2a],
  [0x49, 0x49, 0x2b, 0x00],
  [0x4d, 0x4d, 0x00, 0x2b],
)
const isBmp = startsWith([0x42, 0x4d])
const isGif: FormatCheck = (head) => /^GIF8[79]a$/.test(ascii(head, 0, 6))
const isWebp: FormatCheck = (head) => ascii(head, 0, 4) === 'RIFF' && ascii(head, 8, 12) === 'WEBP'
/** The JP2 family's signature box, or a bare codestream. */
const isJpeg2000 = startsWith(
  [0x00, 0x00, 0x00, 0x0c, 0x6a, 0x50, 0x20, 0x20, 0x0d, 0x0a, 0x87, 0x0a],
  [0xff, 0x4f, 0xff, 0x51],
)
/** Plain and raw portable pixmaps. */
const isPpm: FormatCheck = (head) => /^P[36]\s/.test(ascii(head, 0, 3))

/** An ISO media file whose major or compatible brands say AVIF. */
function isAvif(head: Uint8Array): boolean {
  if (ascii(head, 4, 8) !== 'ftyp') return false
  const boxEnd = (head[2] ?? 0) * 256 + (head[3] ?? 0)
  for (let at = 8; at < Math.min(boxEnd, head.length); at += 4) {
    if (at !== 12 && /^avi[fs]$/.test(ascii(head, at, at + 4))) return true
  }
  return false
}

const TGA_IMAGE_TYPES: ReadonlySet<number> = new Set([1, 2, 3, 9, 10, 11])
const TGA_PIXEL_BITS: ReadonlySet<number> = new Set([8, 15, 16, 24, 32])

/** Targa has no signature; its 18-byte header allows few values. */
function isTga(head: Uint8Array): boolean {
  return (
    head.length >= 18 &&
    (head[1] ?? 0) <= 1 &&
    TGA_IMAGE_TYPES.has(head[2] ?? 0) &&
    TGA_PIXEL_BITS.has(head[16] ?? 0)
  )
}

const PCX_VERSIONS: ReadonlySet<number> = new Set([0, 2, 3, 4, 5])
const PCX_PLANE_BITS: ReadonlySet<number> = new Set([1, 2, 4, 8])

function isPcx(head: Uint8Array): boolean {
  return (
    head[0] === 0x0a &&
    PCX_VERSIONS.has(head[1] ?? 255) &&
    (head[2] ?? 255) <= 1 &&
    PCX_PLANE_BITS.has(head[3] ?? 0)
  )
}

/** The eleven formats of OCR images, by media subtype in lower case. */
export const IMAGE_FORMATS: ReadonlyMap<string, FormatCheck> = new Map(
  (
    [
      [isPng, ['png', 'x-png']],
      [isJpeg, ['jpeg', 'jpg', 'pjpeg']],
      [isTiff, ['tiff', 'tif']],
      [isWebp, ['webp']],
      [isBmp, ['bmp', 'x-bmp', 'x-ms-bmp']],
      [isGif, ['gif']],
      [isJpeg2000, ['jpeg2000', 'jp2', 'jpx', 'jpm', 'j2k', 'j2c', 'x-jp2']],
      [isAvif, ['avif', 'avif-sequence']],
      [isPpm, ['ppm', 'x-portable-pixmap', 'x-ppm']],
      [isTga, ['tga', 'x-tga', 'x-targa', 'targa']],
      [isPcx, ['pcx', 'x-pcx', 'vnd.zbrush.pcx']],
    ] as const
  ).flatMap(([check, types]) => types.map((type) => [type, check] as const)),
)
