import { ApiError } from '../http/errors.ts'
import { IMAGE_FORMATS } from './image-formats.ts'

const PARAM = 'image_url.url'

/** Number of base64 characters decoded for the format check: enough for the brands of an AVIF file. */
const HEAD_CHARACTERS = 128

/** @throws ApiError unsupported_image_url for a URL that is not a data URL */
export function refuseRemoteUrl(url: string): void {
  if (/^data:/i.test(url)) return
  throw new ApiError(
    'unsupported_image_url',
    'OCR models take images as base64 data URLs only; remote URLs are not fetched.',
    { param: PARAM },
  )
}

/**
 * Checks the image of an OCR request: a base64 data URL of one of eleven formats, whose first bytes must match the declared
 * one (see docs/api.md). Only those bytes are decoded.
 * @throws ApiError unsupported_image_url for a URL that is not a data URL, else invalid_request_error
 */
export function checkImageUrl(url: string): void {
  refuseRemoteUrl(url)
  const [prefix = '', type] = /^data:image\/([a-z0-9.+-]+);base64,/i.exec(url) ?? []
  if (type === undefined)
    throw invalid('The image must be given as data:image/<type>;base64,<data>.')
  const looksRight = IMAGE_FORMATS.get(type.toLowerCase())
  if (!looksRight) {
    throw invalid(
      'The image must be png, jpeg, tiff, webp, bmp, gif, jpeg2000, avif, ppm, tga or pcx.',
    )
  }
  const data = url.slice(prefix.length)
  if (data.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(data)) {
    throw invalid('The image data must be standard base64 with padding.')
  }
  if (!looksRight(firstBytes(data))) throw invalid('The image data is not of the declared type.')
}

function firstBytes(data: string): Uint8Array {
  return Uint8Array.from(atob(data.slice(0, HEAD_CHARACTERS)), (char) => char.charCodeAt(0))
}

function invalid(message: string): ApiError {
  return new ApiError('invalid_request_error', message, { param: PARAM })
}
