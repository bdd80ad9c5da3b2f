import { z } from 'zod'
import { WEBHOOK_EVENTS } from '../../protocol/webhook-config.ts'
import type { AdminOperation } from '../auth/admin-token.ts'
import { PAGE_SIZE, oneOf } from '../http/query.ts'
import { DELIVERY_STATES } from './handlers.ts'

const tag = 'Admin'

const delivery = z.object({
  id: z.string(),
  type: z.enum(WEBHOOK_EVENTS),
  endpoint: z.string(),
  state: z.enum(DELIVERY_STATES),
  attempts: z.int(),
  last_result: z.string().nullable(),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
  next_attempt_at: z.iso.datetime().nullable(),
})

export const LIST_DELIVERIES_OPERATION: AdminOperation = {
  summary: 'List what was reported to which webhook, newest event first',
  tag,
  scope: 'read',
  query: {
    limit: { ...PAGE_SIZE, description: 'Deliveries of a page: 100, at most 1000.' },
    state: { ...oneOf(DELIVERY_STATES), description: 'Only those in this state.' },
  },
  answer: {
    'application/json': {
      name: 'WebhookDeliveryList',
      schema: z.object({ data: z.array(delivery) }),
    },
  },
  errors: ['invalid_parameter'],
}

export const RUN_WEBHOOKS_OPERATION: AdminOperation = {
  summary: 'Look for what is to be reported, and deliver what is due',
  tag,
  scope: 'all',
  answer: {
    'application/json': {
      name: 'WebhookRun',
      schema: z.object({ reported: z.int(), delivered: z.int(), failed: z.int() }),
    },
  },
  errors: [],
}
