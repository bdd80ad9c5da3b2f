/**
 * Members of a chat request that a route forwards by default, in addition to those that every route forwards. vLLM,
 * SGLang, llama.cpp and the hosted engines interpret them alike, and none of them multiplies answers or makes a
 * provider store data.
 */
export const DEFAULT_FORWARD = [
  'logit_bias',
  'min_p',
  'min_tokens',
  'repetition_penalty',
  'stop_token_ids',
] as const

/** Members that the router itself reads or refuses; a route cannot forward them unchanged. */
export const OWN_CHAT_MEMBERS: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'stream',
  'stream_options',
  'temperature',
  'max_tokens',
  'max_completion_tokens',
  'failover',
  'include_reasoning',
  'reasoning',
  'reasoning_effort',
  'chat_template_kwargs',
  'functions',
  'function_call',
  'attestation',
])
