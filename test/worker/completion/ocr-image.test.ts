import { describe, expect, it } from 'vitest'
import { toBase64, utf8 } from '../../../src/protocol/bytes.ts'
import { checkImageUrl } from '../../../src/worker/completion/ocr-image.ts'
import { refusalOf } from '../../support/refusal.ts'

const padded = (...head: readonly number[]) =>
  Uint8Array.from({ length: 200 }, (_, i) => head[i] ?? 0)
const chars = (text: string) => Array.from(utf8(text))

/** The first bytes of a real file of each format. */
const SAMPLES: Readonly<Record<string, Uint8Array>> = {
  png: padded(0x89, ...chars('PNG\r\n'), 0x1a, 0x0a),
  jpeg: padded(0xff, 0xd8, 0xff, 0xe0, 0, 16, ...chars('JFIF')),
  tiff: padded(...chars('II'), 42, 0, 8),
  webp: padded(...chars('RIFF'), 1, 2, 3, 4, ...chars('WEBPVP8 ')),
  bmp: padded(...chars('BM'), 0x36, 0x10),
  gif: padded(...chars('GIF89a')),
  jpeg2000: padded(0, 0, 0, 12, ...chars('jP  \r\n'), 0x87, 0x0a),
  avif: padded(0, 0, 0, 28, ...chars('ftypavif'), 0, 0, 0, 0, ...chars('avifmif1miaf')),
  ppm: padded(...chars('P6\n640 480\n255\n')),
  tga: padded(0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 64, 0, 24, 32),
  pcx: padded(10, 5, 1, 8, 0, 0, 0, 0, 63),
}

const OTHER_FORMS: readonly (readonly [string, Uint8Array])[] = [
  ['jpg', padded(0xff, 0xd8, 0xff, 0xdb)],
  ['tif', padded(...chars('MM'), 0, 42)],
  ['gif', padded(...chars('GIF87a'))],
  ['jp2', padded(0xff, 0x4f, 0xff, 0x51)],
  ['avif', padded(0, 0, 0, 32, ...chars('ftypmif1'), 0, 0, 0, 0, ...chars('mif1miafavif'))],
  ['x-portable-pixmap', padded(...chars('P3 2 2 255 '))],
  ['x-tga', padded(0, 1, 9, 0, 0, 0, 1, 24, 0, 0, 0, 0, 64, 0, 64, 0, 8, 0)],
  ['x-pcx', padded(10, 3, 1, 1)],
  ['PNG', padded(0x89, ...chars('PNG\r\n'), 0x1a, 0x0a)],
]

const dataUrl = (type: string, bytes: Uint8Array) => `data:image/${type};base64,${toBase64(bytes)}`

const invalid = (message: string) => ({
  code: 'invalid_request_error',
  message,
  param: 'image_url.url',
})

describe('checkImageUrl', () => {
  it.each([...Object.entries(SAMPLES), ...OTHER_FORMS])('takes %s', (type, bytes) => {
    expect(() => checkImageUrl(dataUrl(type, bytes))).not.toThrow()
  })

  it('refuses every format declared as another', () => {
    for (const declared of Object.keys(SAMPLES)) {
      for (const [actual, bytes] of Object.entries(SAMPLES)) {
        if (declared === actual) continue
        expect(refusalOf(() => checkImageUrl(dataUrl(declared, bytes)))).toEqual(
          invalid('The image data is not of the declared type.'),
        )
      }
    }
  })

  it('refuses an HEIC file as AVIF', () => {
    const heic = padded(
      0,
      0,
      0,
      24,
      ...chars('ftypheic'),
      0,
      0,
      0,
      0,
      ...chars('mif1heic'),
      ...chars('avif'),
    )
    expect(refusalOf(() => checkImageUrl(dataUrl('avif', heic)))).toEqual(
      invalid('The image data is not of the declared type.'),
    )
  })

  it.each([
    'https://example.com/page.png',
    'http://169.254.169.254/latest',
    'HTTPS://EXAMPLE.COM/A.PNG',
    'file:///etc/passwd',
    'ftp://example.com/a.png',
    '//example.com/a.png',
    'iVBORw0KGgo=',
    '',
  ])('refuses the URL "%s", which is no data URL', (url) => {
    expect(refusalOf(() => checkImageUrl(url))).toEqual({
      code: 'unsupported_image_url',
      message: 'OCR models take images as base64 data URLs only; remote URLs are not fetched.',
      param: 'image_url.url',
    })
  })

  it.each([
    'data:',
    'data:image/png,abcd',
    'data:image/png;base64',
    'data:image/;base64,iVBORw0KGgo=',
    'data:image/png;charset=utf-8;base64,iVBORw0KGgo=',
    'data:;base64,iVBORw0KGgo=',
    'data:text/plain;base64,iVBORw0KGgo=',
    'data:application/pdf;base64,JVBERi0=',
  ])('refuses the form of "%s"', (url) => {
    expect(refusalOf(() => checkImageUrl(url))).toEqual(
      invalid('The image must be given as data:image/<type>;base64,<data>.'),
    )
  })

  it.each(['svg+xml', 'heic', 'x-icon', 'pngx'])('refuses the type %s', (type) => {
    expect(refusalOf(() => checkImageUrl(dataUrl(type, padded())))).toEqual(
      invalid(
        'The image must be png, jpeg, tiff, webp, bmp, gif, jpeg2000, avif, ppm, tga or pcx.',
      ),
    )
  })

  it.each([
    '',
    'iVBORw0KGgo',
    'iVBORw0KGg-_',
    'iVBORw0K Ggo',
    'iVBORw0KGgo=\n',
    '=iVB',
    'iV=ORw0=',
    '====',
  ])('refuses the data "%s"', (data) => {
    expect(refusalOf(() => checkImageUrl(`data:image/png;base64,${data}`))).toEqual(
      invalid('The image data must be standard base64 with padding.'),
    )
  })
})
