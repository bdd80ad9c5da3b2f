import {
  wholeAnswerSpecSchema,
  type WholeAnswerSpec,
  type WholeAnswerRecord,
} from '../../src/protocol/whole-answer.ts'

/** The specification of a whole answer in the chat format, without a receipt, but for the changes. */
export function wholeAnswerSpec(
  change: Partial<Record<keyof WholeAnswerSpec, unknown>> = {},
): WholeAnswerSpec {
  return wholeAnswerSpecSchema.parse({
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

/** What the daemon says of such an answer that it has written, without a receipt. */
export const WHOLE_ANSWER_RECORD: WholeAnswerRecord = {
  counts: { prompt: 1, completion: 2, uncounted_text_bytes: 0 },
  provider_response_id: null,
  request_sha256: 'a1'.repeat(32),
  response_sha256: 'a2'.repeat(32),
  signed: null,
}
