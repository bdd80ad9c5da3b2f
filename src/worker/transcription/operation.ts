import { z } from 'zod'
import { BILLING_UNITS } from '../../protocol/config.ts'
import { REQUIRE_HEADER_DOC } from '../http/attestation-member.ts'
import { PAID_ANSWER_HEADERS, RECEIPT_HEADER } from '../http/headers-doc.ts'
import type { Operation } from '../http/operation.ts'
import { IDEMPOTENCY_ERRORS, IDEMPOTENCY_HEADER_DOC } from '../idempotency/key-header.ts'
import { serviceObjectSchema } from '../settle/service-schema.ts'
import { transcriptionFormSchema } from './request.ts'

const span = { start: z.number(), end: z.number() }

const segment = z.object({
  id: z.int(),
  seek: z.number(),
  ...span,
  text: z.string(),
  tokens: z.array(z.int()),
  temperature: z.number(),
  avg_logprob: z.number(),
  compression_ratio: z.number(),
  no_speech_prob: z.number(),
})

/** A transcription in JSON; `answer.ts` writes it. */
export const transcriptionSchema = z.object({
  text: z.string(),
  language: z.string().optional(),
  duration: z.number().optional().describe('Seconds.'),
  segments: z.array(segment).optional().describe('With `verbose_json`.'),
  words: z.array(z.object({ word: z.string(), ...span })).optional(),
  service: serviceObjectSchema.extend({
    usage: z.object({
      billing_unit: z.enum(['token', ...BILLING_UNITS]),
      audio_seconds: z.number().optional(),
      prompt_tokens: z.int().optional(),
      completion_tokens: z.int().optional(),
    }),
  }),
})

export const TRANSCRIPTION_OPERATION: Operation = {
  summary: 'Transcribe an audio file',
  tag: 'Audio',
  headers: { ...RECEIPT_HEADER, ...REQUIRE_HEADER_DOC, ...IDEMPOTENCY_HEADER_DOC },
  answerHeaders: {
    ...PAID_ANSWER_HEADERS,
    'x-service-dropped-members':
      'Fields and headers of the request that have no effect on a transcription.',
    'x-service-routed-model': 'The route that served the request, where the answer is plain text.',
    'x-service-receipt-id': 'Id of the receipt, where the answer is plain text.',
  },
  body: {
    mediaType: 'multipart/form-data',
    content: { name: 'TranscriptionRequest', schema: transcriptionFormSchema },
  },
  answer: {
    'application/json': { name: 'Transcription', schema: transcriptionSchema },
    'text/plain': { name: 'TranscriptionText', schema: z.string() },
  },
  errors: [
    ...IDEMPOTENCY_ERRORS,
    'invalid_request_error',
    'missing_field',
    'invalid_attestation_constraint',
    'attestation_not_accepted',
    'invalid_content_type',
    'invalid_multipart',
    'request_timeout',
    'invalid_model',
    'invalid_file',
    'unsupported_file_type',
    'file_too_large',
    'invalid_response_format',
    'content_policy_violation',
    'insufficient_balance',
    'insufficient_quota',
    'model_not_allowed',
    'customer_suspended',
    'upload_too_large',
    'answer_too_long',
    'rate_limit_exceeded',
    'upstream_rate_limit',
    'upstream_error',
    'route_not_priced',
  ],
}
