import { z } from 'zod'
import type { AnswerHeaders, Described } from './operation.ts'

type HeaderDoc = Described<{ readonly schema: z.ZodType }>

/** `X-Service-Receipt` in the description of endpoints that issue receipts. */
export const RECEIPT_HEADER: Readonly<Record<string, HeaderDoc>> = {
  'X-Service-Receipt': {
    description: '`false` asks for no receipt. Everything else, and its absence, asks for one.',
    schema: z.enum(['true', 'false']),
  },
}

/** The rate limit of the key's plan; also sent with the 429 that enforces it. */
export const LIMIT_ANSWER_HEADERS: AnswerHeaders = {
  'x-ratelimit-limit-requests': 'Requests per minute of the key, where its plan limits them.',
  'x-ratelimit-remaining-requests': 'How many of them are left in this minute.',
  'x-ratelimit-reset-requests': 'When the minute ends, such as `12s`.',
}

/** Headers of the answers of every endpoint that calls a provider. */
export const PAID_ANSWER_HEADERS: AnswerHeaders = {
  'x-receipt-id': 'Id of the receipt; absent without one.',
  'idempotency-replayed': '`true`: a stored answer, which was not billed again.',
  ...LIMIT_ANSWER_HEADERS,
}
