import { z } from 'zod'
import type { Constraints } from '../../protocol/constraints.ts'
import { readAttestation } from '../http/attestation-member.ts'
import { ApiError } from '../http/errors.ts'
import { audioOf, type Audio } from './audio-type.ts'
import type { FieldName, UploadedFile, UploadForm } from './form.ts'
import { FILE_BYTES, tooLarge } from './upload-body.ts'

const RESPONSE_FORMATS = ['json', 'text', 'verbose_json'] as const

export type ResponseFormat = (typeof RESPONSE_FORMATS)[number]

/** A checked request. */
export interface TranscriptionRequest extends CheckedForm {
  /** The longest duration that the file can have, in seconds. */
  readonly longestSeconds: number
}

/** A checked form. Optional fields that were empty are left out. */
export interface CheckedForm {
  readonly file: UploadedFile
  readonly audio: Audio
  readonly model: string
  readonly region: string | undefined
  readonly provider: string | undefined
  readonly format: ResponseFormat
  readonly language: string | undefined
  readonly prompt: string | undefined
  /** The text as received: it is forwarded unchanged. */
  readonly temperature: string | undefined
  /** What the client requires of the provider. */
  readonly constraints: Constraints | undefined
}

const MAX_TEMPERATURE = 2

/** ISO 639 in two or three letters, and the subtags that BCP 47 allows after it. */
const language = z.string().regex(/^[a-zA-Z]{2,3}(-[a-zA-Z0-9]{1,8})*$/)

/**
 * A temperature as text, with an exponent in the form that Python writes (`1e-05`). No digit can match two parts of the
 * pattern: backtracking over 64 KiB of digits would be slow.
 */
const temperature = z
  .string()
  .regex(/^(?:[0-9]*\.)?[0-9]+(?:[eE][-+]?[0-9]{1,3})?$/)
  .refine((text) => Number(text) <= MAX_TEMPERATURE)

/** The form for the interface description; the checks below use the same fields. */
export const transcriptionFormSchema = z.object({
  file: z.string().meta({ format: 'binary', description: 'Audio, 25 MiB at most.' }),
  model: z.string().describe('A selector in any of the four forms.'),
  region: z.string().optional(),
  provider: z.string().optional(),
  response_format: z.enum(RESPONSE_FORMATS).optional(),
  language: language.optional().describe('Required with `verbose_json`.'),
  prompt: z.string().optional(),
  temperature: temperature.optional().describe(`From 0 to ${MAX_TEMPERATURE}.`),
  attestation: z.string().optional().describe('What the provider must meet, in JSON.'),
})

/**
 * Checks everything about a form that needs no catalogue (see docs/api.md).
 * @throws ApiError `missing_field`, `invalid_attestation_constraint`, `invalid_response_format`, `invalid_request_error`, `invalid_file`,
 *   `upload_too_large`, `unsupported_file_type`
 */
export function checkForm(form: UploadForm): CheckedForm {
  const { file } = form
  const field = (name: FieldName) => form.fields.get(name) || undefined
  const required = form.fields.get('attestation')
  if (file === undefined) throw missing('file')
  const model = field('model')
  if (model === undefined) throw missing('model')
  const format = formatOf(field('response_format'))
  const spoken = field('language')
  if (format === 'verbose_json' && spoken === undefined) {
    throw missing('language', 'It is required with the response format "verbose_json".')
  }
  checkOptions(form)
  if (file.bytes.length === 0) {
    throw new ApiError('invalid_file', 'The file is empty.', { param: 'file' })
  }
  if (file.bytes.length > FILE_BYTES) throw tooLarge()
  const audio = audioOf(file)
  return {
    file,
    audio,
    model,
    region: field('region'),
    provider: field('provider'),
    format,
    language: spoken,
    prompt: field('prompt'),
    temperature: field('temperature'),
    constraints: required === undefined ? undefined : readAttestation(required),
  }
}

function formatOf(format: string = 'json'): ResponseFormat {
  const known = transcriptionFormSchema.shape.response_format.safeParse(format)
  if (known.success && known.data !== undefined) return known.data
  const message = `The response format must be one of ${RESPONSE_FORMATS.join(', ')}.`
  throw new ApiError('invalid_response_format', message, { param: 'response_format' })
}

function checkOptions({ fields }: UploadForm): void {
  const hint = fields.get('language') ?? ''
  if (hint !== '' && !language.safeParse(hint).success) {
    throw invalid('language', 'must be an ISO 639-1 code such as "en"')
  }
  const temperatureText = fields.get('temperature') ?? ''
  if (temperatureText !== '' && !temperature.safeParse(temperatureText).success) {
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
