/**
 * Members of a chat request that a route forwards besides those every route does, where its configuration names no
 * others: what vLLM, SGLang, llama.cpp and the hosted engines of the format understand alike, and what neither
 * multiplies the answers nor tells a provider to keep anything.
 */
export const DEFAULT_FORWARD = [
  'logit_bias',
  'min_p',
  'min_tokens',
  'repetition_penalty',
  'stop_token_ids',
] as const

/** Members that the router reads, answers for or refuses; a route cannot have them forwarded as they are. */
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
