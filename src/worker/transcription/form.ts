import { ContentDisposition } from '@remix-run/headers/content-disposition'
import {
  getMultipartBoundary,
  MultipartParseError,
  parseMultipart,
  type MultipartPart,
} from '@remix-run/multipart-parser'
import { concatBytes, fromUtf8, type Bytes } from '../../protocol/bytes.ts'
import { refuseMistakenMember } from '../http/attestation-member.ts'
import { ApiError } from '../http/errors.ts'
import { invalidContentType } from './upload-body.ts'

/** The fields that the endpoint reads; each may occur once (see docs/api.md). */
export const FIELDS = [
  'model',
  'region',
  'provider',
  'response_format',
  'language',
  'prompt',
  'temperature',
  'stream',
  'failover',
  'attestation',
] as const

export type FieldName = (typeof FIELDS)[number]

export interface UploadedFile {
  /** A view of the upload's one buffer. */
  readonly bytes: Bytes
  /** The client's file name; empty where there was none. */
  readonly name: string
  /** The media type declared by the client, without parameters, lowercase; undefined where none was declared. */
  readonly type: string | undefined
}

export interface UploadForm {
  readonly file: UploadedFile | undefined
  readonly fields: ReadonlyMap<FieldName, string>
  /** The names of parts that have no effect. */
  readonly dropped: readonly string[]
}

/** How clients name the entries of the `failover` list in a form; the whole list is refused. */
const LIST_ENTRY = /^failover\[/

const MAX_PARTS = 100
const MAX_FIELD_BYTES = 64 * 1024

/** Maximum length of the preamble before the first boundary, bytes. Known clients send none. */
const PREAMBLE_BYTES = 4096

/**
 * Parses a form (RFC 7578). The parts may come in any order. Parts with other names are dropped, unless they may be meant as
 * `attestation`, such as `attestation[min]`, which some clients make of an object.
 * @throws ApiError `invalid_multipart` for a body that is malformed, cut off, or has a known part twice;
 *   `invalid_content_type` for a content type without a usable boundary; `invalid_attestation_constraint`
 */
export function parseForm(contentType: string, body: Bytes): UploadForm {
  const boundary = getMultipartBoundary(contentType)?.trim()
  if (boundary === undefined || boundary === '') throw invalidContentType()
  const fields = new Map<FieldName, string>()
  const dropped: string[] = []
  let file: UploadedFile | undefined
  for (const part of partsOf(body, boundary)) {
    const { name, fileName } = dispositionOf(part)
    if (name === 'file') {
      if (file !== undefined) throw repeated(name)
      file = { bytes: contentOf(part), name: fileName, type: declaredType(part) }
    } else if (isField(name)) {
      if (fields.has(name)) throw repeated(name)
      fields.set(name, textOf(name, part))
    } else if (LIST_ENTRY.test(name)) fields.set('failover', textOf('failover', part))
    else {
      refuseMistakenMember(name)
      dropped.push(name)
    }
  }
  return { file, fields, dropped }
}

/** The parts of a whole body; their contents are views of it. */
function* partsOf(body: Bytes, boundary: string): Generator<MultipartPart> {
  const limits = { maxParts: MAX_PARTS, maxFileSize: body.length, maxTotalSize: body.length }
  try {
    yield* parseMultipart(body.subarray(preambleLength(body, boundary)), { boundary, ...limits })
  } catch (error) {
    throw error instanceof MultipartParseError ? broken() : error
  }
  if (body.length === 0) throw broken()
}

/** The length of the preamble, which RFC 2046 section 5.1.1 allows but the parser does not skip. */
function preambleLength(body: Bytes, boundary: string): number {
  const start = new TextDecoder('latin1').decode(body.subarray(0, PREAMBLE_BYTES))
  const at = start.indexOf(`\r\n--${boundary}`)
  return start.startsWith(`--${boundary}`) || at < 0 ? 0 : at + 2
}

function dispositionOf(part: MultipartPart): { readonly name: string; readonly fileName: string } {
  const { name, filename, filenameSplat } = ContentDisposition.from(
    headersOf(part)['content-disposition'] ?? null,
  )
  if (name === undefined) throw broken()
  return { name, fileName: extendedValue(filenameSplat) ?? filename ?? '' }
}

/** A file name in the encoding of RFC 8187, which few clients use; undefined when absent. */
function extendedValue(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const encoded = /^utf-8'[^']*'(.*)$/i.exec(text)?.[1]
  try {
    if (encoded !== undefined) return decodeURIComponent(encoded)
  } catch {
    // A name that cannot be decoded is refused like any other malformed header.
  }
  throw broken()
}

function headersOf(part: MultipartPart): MultipartPart['headers'] {
  try {
    return part.headers
  } catch {
    throw new ApiError('invalid_multipart', 'The headers of a part are not UTF-8.')
  }
}

/** The media type without its parameters, lowercase. */
function declaredType(part: MultipartPart): string | undefined {
  return headersOf(part)['content-type']?.split(';')[0]?.trim().toLowerCase()
}

/** The content of a part. It is in one piece, because the parser got the whole body in one piece. */
function contentOf({ content }: MultipartPart): Bytes {
  const [whole = new Uint8Array(), ...more] = content
  if (more.length > 0 || !(whole.buffer instanceof ArrayBuffer)) return concatBytes(...content)
  return new Uint8Array(whole.buffer, whole.byteOffset, whole.length)
}

function textOf(param: FieldName, part: MultipartPart): string {
  if (part.size > MAX_FIELD_BYTES) throw broken()
  try {
    return fromUtf8(contentOf(part))
  } catch {
    throw new ApiError('invalid_multipart', `The field "${param}" is not UTF-8.`, { param })
  }
}

function isField(name: string): name is FieldName {
  return (FIELDS as readonly string[]).includes(name)
}

function repeated(field: string): ApiError {
  return new ApiError('invalid_multipart', `The form has the part "${field}" twice.`, {
    param: field,
  })
}

function broken(): ApiError {
  return new ApiError('invalid_multipart', 'The multipart body is malformed or ends too early.')
}
