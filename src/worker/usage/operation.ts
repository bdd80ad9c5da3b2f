import { z } from 'zod'
import { BILLING_UNITS } from '../../protocol/config.ts'
import type { Operation } from '../http/operation.ts'
import { USAGE_PARAMETERS } from './query.ts'

/** A row of the ledger; written by `row-json.ts`. */
export const usageRowSchema = z.object({
  id: z.uuidv4(),
  model: z.string(),
  modality: z.enum(['chat', 'transcription', 'embedding']),
  provider: z.string(),
  region: z.string().optional(),
  billing_unit: z.enum(['token', ...BILLING_UNITS]),
  audio_seconds: z.number().nullable(),
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  cost_eur: z.number().describe('All digits are written out; read them as text to have them all.'),
  discount_applied_pct: z.int(),
  receipt_id: z.uuid().nullable(),
  failover: z.boolean(),
  /** Present where the provider reported more usage than the request can have caused. */
  usage_capped: z.literal(true).optional(),
  key_prefix: z.string().nullable(),
  key_name: z.string().nullable(),
  created_at: z.iso.datetime(),
})

export const USAGE_OPERATION: Operation = {
  summary: 'List what was billed, newest first',
  tag: 'Usage',
  query: {
    limit: { ...USAGE_PARAMETERS.limit, description: 'Rows of a page: 100, at most 1000.' },
    offset: { ...USAGE_PARAMETERS.offset, description: 'Rows to skip.' },
    start: { ...USAGE_PARAMETERS.start, description: 'Rows from this time on.' },
    end: { ...USAGE_PARAMETERS.end, description: 'Rows up to this time.' },
    model: { ...USAGE_PARAMETERS.model, description: 'Rows of this route.' },
    key_prefix: { ...USAGE_PARAMETERS.key_prefix, description: 'Rows of this key.' },
  },
  answer: {
    'application/json': {
      name: 'UsagePage',
      schema: z.object({
        data: z.array(usageRowSchema),
        total_count: z.int(),
        limit: z.int(),
        offset: z.int(),
      }),
    },
    'text/csv': { name: 'UsageCsv', schema: z.string() },
  },
  errors: ['invalid_parameter', 'rate_limit_exceeded'],
}
