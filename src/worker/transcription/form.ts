import { decodeField, make, type PartInfo } from 'multipasta'
import { concatBytes, type Bytes } from '../../protocol/bytes.ts'
import { ApiError } from '../http/errors.ts'
import { invalidContentType } from './upload-body.ts'

/** The fields that mean something here, each of which may come once (interface: POST /v1/audio/transcriptions). */
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
] as const

export type FieldName = (typeof FIELDS)[number]

export interface UploadedFile {
  /** A view of the upload's one buffer. */
  readonly bytes: Bytes
  /** As the client named it; empty where it did not. */
  readonly name: string
  /** The media type as the client declared it, without parameters, lowercase; undefined where it declared none. */
  readonly type: string | undefined
}

export interface UploadForm {
  readonly file: UploadedFile | undefined
  readonly fields: ReadonlyMap<FieldName, string>
}

const MAX_PARTS = 100
const MAX_FIELD_BYTES = 64 * 1024
const SEMICOLON = 0x3b

/**
 * Takes a form apart (RFC 7578). The order of its parts is free and parts of other names are ignored.
 * @throws ApiError `invalid_multipart` for a body that is malformed, cut, or has a known part twice;
 *   `invalid_content_type` for a content type without a usable boundary
 */
export function parseForm(contentType: string, body: Bytes): UploadForm {
  const form = new FormCollector()
  const parser = make({
    headers: { 'content-type': contentType },
    isFile: ({ name }) => !isField(name),
    onFile: (info) => (info.name === 'file' ? form.openFile(info) : ignore),
    onField: (info, value) => form.addField(info, value),
    onError: ({ _tag }) => form.fail(_tag === 'InvalidBoundary' ? invalidContentType() : broken()),
    onDone: () => form.end(),
    maxParts: MAX_PARTS,
    maxFieldSize: MAX_FIELD_BYTES,
  })
  try {
    for (const chunk of inChunks(body)) parser.write(chunk)
    parser.end()
  } catch {
    // It decodes file names and throws on those it cannot decode.
    form.fail(broken())
  }
  return form.finish()
}

/**
 * The parser copies a chunk it has to join to an earlier one, and loses a part whose boundary ends one byte before
 * a chunk does. Split inside the first part's headers, where a parameter begins, neither can happen, and the
 * file comes out as a view of the body.
 */
function inChunks(body: Bytes): readonly Bytes[] {
  const split = body.indexOf(SEMICOLON) + 1
  return [body.subarray(0, split), body.subarray(split)].filter(({ length }) => length > 0)
}

/** What the parser reports; the first thing wrong counts, and nothing after the closing boundary does. */
class FormCollector {
  readonly #fields = new Map<FieldName, string>()
  #file: { readonly info: PartInfo; bytes: Bytes } | undefined
  #error: ApiError | undefined
  #ended = false

  openFile(info: PartInfo): (chunk: Uint8Array | null) => void {
    if (this.#file !== undefined) this.fail(repeated('file'))
    const file: { readonly info: PartInfo; bytes: Bytes } = { info, bytes: new Uint8Array() }
    this.#file = file
    return (chunk) => {
      if (chunk !== null) file.bytes = joined(file.bytes, chunk)
    }
  }

  addField(info: PartInfo, value: Uint8Array): void {
    const { name } = info
    if (!isField(name)) return
    if (this.#fields.has(name)) this.fail(repeated(name))
    this.#fields.set(name, decodeField(info, value))
  }

  fail(error: ApiError): void {
    if (!this.#ended) this.#error ??= error
  }

  end(): void {
    this.#ended = true
  }

  finish(): UploadForm {
    const error = this.#error ?? (this.#ended ? undefined : broken())
    if (error) throw error
    return { file: this.#file && uploadedFile(this.#file), fields: this.#fields }
  }
}

function uploadedFile({ info, bytes }: { info: PartInfo; bytes: Bytes }): UploadedFile {
  const declared = info.headers['content-type'] !== undefined
  return { bytes, name: info.filename ?? '', type: declared ? info.contentType : undefined }
}

/** Bytes that follow each other in one buffer stay there. */
function joined(before: Bytes, chunk: Uint8Array): Bytes {
  const { buffer, byteOffset, length } = chunk
  if (!(buffer instanceof ArrayBuffer)) return concatBytes(before, chunk)
  if (before.length === 0) return new Uint8Array(buffer, byteOffset, length)
  if (before.buffer === buffer && before.byteOffset + before.length === byteOffset) {
    return new Uint8Array(buffer, before.byteOffset, before.length + length)
  }
  return concatBytes(before, chunk)
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

function ignore(): void {
  // A part nobody asked for.
}
