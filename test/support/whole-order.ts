import { wholeOrderSchema, type WholeOrder } from '../../src/protocol/whole-order.ts'

/** An order of a whole answer at the chat door, without a receipt, but for the changes. */
export function wholeOrder(change: Partial<Record<keyof WholeOrder, unknown>> = {}): WholeOrder {
  return wholeOrderSchema.parse({
    id: 'chatcmpl-1',
    requested_route: 'glm',
    routed_model: 'nova/glm',
    failover: false,
    format: { door: 'chat' },
    include_reasoning: true,
    billing: { prompt_estimate: 1, max_prompt_tokens: 10, max_completion_tokens: 10 },
    receipt: null,
    ...change,
  })
}
