import { ApiError } from '../http/errors.ts'
import { audioOf, type Audio } from './audio-type.ts'
import type { FieldName, UploadedFile, UploadForm } from './form.ts'
import { FILE_BYTES, tooLarge } from './upload-body.ts'

const RESPONSE_FORMATS = ['json', 'text', 'verbose_json'] as const

export type ResponseFormat = (typeof RESPONSE_FORMATS)[number]

/** A checked request. Optional fields that were empty are left out. */
export interface TranscriptionRequest {
  readonly file: UploadedFile
  readonly audio: Audio
  readonly model: string
  readonly region: string | undefined
  readonly provider: string | undefined
  readonly format: ResponseFormat
  readonly language: string | undefined
  readonly prompt: string | undefined
  /** As written, for it is forwarded so. */
  readonly temperature: string | undefined
}

/** ISO 639 in two or three letters, and what BCP 47 allows behind it. */
const LANGUAGE = /^[a-z]{2,3}(-[a-z0-9]{1,8})*$/i
const DECIMAL = /^[0-9]*\.?[0-9]+$/
const MAX_TEMPERATURE = 2

/**
 * Checks everything about a form that needs no catalogue (interface: POST /v1/audio/transcriptions).
 * @throws ApiError `missing_field`, `invalid_response_format`, `invalid_request_error`, `invalid_file`,
 *   `upload_too_large`, `unsupported_file_type`
 */
export function parseTranscriptionRequest(form: UploadForm): TranscriptionRequest {
  const { file } = form
  const field = (name: FieldName) => form.fields.get(name) || undefined
  if (file === undefined) throw missing('file')
  const model = field('model')
  if (model === undefined) throw missing('model')
  const format = formatOf(field('response_format'))
  const language = field('language')
  if (format === 'verbose_json' && language === undefined) {
    throw missing('language', 'It is required with the response format "verbose_json".')
  }
  checkOptions(form)
  if (file.bytes.length === 0) {
    throw new ApiError('invalid_file', 'The file is empty.', { param: 'file' })
  }
  if (file.bytes.length > FILE_BYTES) throw tooLarge()
  return {
    file,
    audio: audioOf(file),
    model,
    region: field('region'),
    provider: field('provider'),
    format,
    language,
    prompt: field('prompt'),
    temperature: field('temperature'),
  }
}

function formatOf(format: string = 'json'): ResponseFormat {
  const known = RESPONSE_FORMATS.find((name) => name === format)
  if (known !== undefined) return known
  const message = `The response format must be one of ${RESPONSE_FORMATS.join(', ')}.`
  throw new ApiError('invalid_response_format', message, { param: 'response_format' })
}

function checkOptions({ fields }: UploadForm): void {
  const language = fields.get('language') ?? ''
  if (language !== '' && !LANGUAGE.test(language)) {
    throw invalid('language', 'must be an ISO 639-1 code such as "en"')
  }
  const temperature = fields.get('temperature') ?? ''
  if (
    temperature !== '' &&
    !(DECIMAL.test(temperature) && Number(temperature) <= MAX_TEMPERATURE)
  ) {
    throw invalid('temperature', `must be a number from 0 to ${MAX_TEMPERATURE}`)
  }
  if (/^(true|1)$/i.test(fields.get('stream') ?? '')) {
    throw invalid('stream', 'cannot be true: transcriptions are not streamed')
  }
  if (fields.has('failover')) {
    throw invalid('failover', 'is not accepted: the router itself moves on within the model')
  }
}

function missing(param: FieldName | 'file', why = ''): ApiError {
  const message = `The field "${param}" is missing. ${why}`.trim()
  return new ApiError('missing_field', message, { param })
}

function invalid(param: FieldName, reason: string): ApiError {
  return new ApiError('invalid_request_error', `The field "${param}" ${reason}.`, { param })
}
