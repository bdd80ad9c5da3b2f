import { z } from 'zod'
import type { Operation } from '../http/operation.ts'

const path = { id: 'The `receipt_id` of an answer.' }
const errors = ['missing_field', 'not_found', 'expired', 'rate_limit_exceeded'] as const

export const RECEIPT_OPERATION: Operation = {
  summary: 'Fetch the signed receipt of an answer',
  tag: 'Receipts',
  path,
  answer: {
    'application/json': {
      name: 'Receipt',
      schema: z.object({
        id: z.uuid(),
        receipt: z.string().describe('Compact JWS, ES256; its key is in the key set.'),
      }),
    },
  },
  errors,
}

export const RECEIPT_EVIDENCE_OPERATION: Operation = {
  summary: 'Fetch the evidence that a receipt names by digest',
  tag: 'Receipts',
  path,
  answer: {
    'application/json': {
      name: 'ReceiptEvidence',
      schema: z.object({
        evidence: z.array(z.object({ sha256: z.string(), data_b64: z.base64() })),
      }),
    },
  },
  errors,
}
