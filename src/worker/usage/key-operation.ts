import { z } from 'zod'
import type { Operation } from '../http/operation.ts'
import { keyViewSchema } from '../settle/key-view.ts'

export const KEY_OPERATION: Operation = {
  summary: 'Show the limits of the API key that asks, and what is left of them',
  tag: 'Usage',
  answer: {
    'application/json': {
      name: 'OwnKey',
      schema: keyViewSchema.extend({
        balance_eur: z.string().optional(),
        available_eur: z.string().optional(),
      }),
    },
  },
  errors: ['rate_limit_exceeded'],
}
