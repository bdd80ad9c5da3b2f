import type { StreamSpec } from '../../src/protocol/stream-record.ts'

/** What a worker asks for of a stream whose chunks the daemon writes, with times that no test reaches. */
export const STREAM_SPEC: StreamSpec = {
  stream: '7c9b7b0e-6d2b-4b0e-9d57-1a6f7cc7a6a1',
  owner: 'cus_1',
  head: { id: 'chatcmpl-1', created: 1, model: 'm' },
  format: { door: 'chat' },
  billing: { prompt_estimate: 7, max_prompt_tokens: 1_000, max_completion_tokens: 1_000 },
  include_reasoning: true,
  idle_ms: 60_000,
  keep_alive_ms: 60_000,
  record_ms: 60_000,
}
