import { ruleTable, type MemberRule } from '../completion/member-rules.ts'

const STATELESS = 'this service keeps no responses; send the whole conversation in "input"'

/** Every member of a request to `/v1/responses` and what becomes of it. */
export const RESPONSES_MEMBERS: readonly MemberRule[] = [
  { member: 'model', becomes: 'mapped', note: 'the route selector' },
  { member: 'input', becomes: 'mapped', note: 'messages; see the table of items' },
  { member: 'instructions', becomes: 'mapped', note: 'the first system message' },
  { member: 'stream', becomes: 'mapped', note: 'whether the answer is streamed' },
  { member: 'max_output_tokens', becomes: 'mapped', note: '`max_tokens`' },
  { member: 'temperature', becomes: 'mapped', note: '`temperature`' },
  { member: 'top_p', becomes: 'mapped', note: '`top_p`' },
  {
    member: 'top_logprobs',
    becomes: 'mapped',
    note: '`logprobs` and `top_logprobs`',
  },
  {
    member: 'reasoning',
    becomes: 'mapped',
    note: '`effort` on the ladder of the route, `none` is `off`; reasoning is shown as summary whatever `summary` says',
  },
  {
    member: 'text',
    becomes: 'mapped',
    note: '`format` becomes `response_format`; `verbosity` is dropped',
  },
  { member: 'tools', becomes: 'mapped', note: '`tools`; see the table of tools' },
  {
    member: 'tool_choice',
    becomes: 'mapped',
    note: '`tool_choice`; a hosted tool counts as `auto`',
  },
  { member: 'parallel_tool_calls', becomes: 'mapped', note: '`parallel_tool_calls`' },
  {
    member: 'include',
    becomes: 'mapped',
    note: '`reasoning.encrypted_content` gives null, `message.output_text.logprobs` asks for log probabilities; the rest is dropped',
  },
  { member: 'metadata', becomes: 'mapped', note: 'repeated in the answer, not forwarded' },
  { member: 'store', becomes: 'mapped', note: 'taken as false, and answered so' },
  { member: 'user', becomes: 'mapped', note: '`user`' },
  { member: 'failover', becomes: 'mapped', note: '`failover`, as on chat completions' },
  {
    member: 'include_reasoning',
    becomes: 'mapped',
    note: '`include_reasoning`, as on chat completions',
  },
  { member: 'previous_response_id', becomes: 'refused', note: STATELESS },
  { member: 'conversation', becomes: 'refused', note: STATELESS },
  {
    member: 'background',
    becomes: 'refused',
    unless: [false],
    note: 'this service keeps no responses; ask with "stream" for long answers',
  },
  {
    member: 'truncation',
    becomes: 'refused',
    unless: ['disabled'],
    note: 'input is never cut; only "disabled" is supported',
  },
  {
    member: 'prompt',
    becomes: 'refused',
    note: 'this service keeps no prompt templates; send "instructions" and "input"',
  },
  {
    member: 'max_tool_calls',
    becomes: 'dropped',
    note: 'it limits hosted tools, of which there are none',
  },
  { member: 'stream_options', becomes: 'dropped', note: 'events are never obfuscated' },
  { member: 'service_tier', becomes: 'dropped', note: 'there is one tier' },
  { member: 'context_management', becomes: 'dropped', note: 'nothing is compacted here' },
  { member: 'moderation', becomes: 'dropped', note: 'nothing is moderated here' },
  {
    member: 'prompt_cache_key',
    becomes: 'dropped',
    note: 'prefix caches are separate for each customer',
  },
  { member: 'prompt_cache_retention', becomes: 'dropped', note: 'the provider decides' },
  { member: 'prompt_cache_options', becomes: 'dropped', note: 'the provider decides' },
  { member: 'safety_identifier', becomes: 'dropped', note: 'never forwarded' },
  {
    member: 'client_metadata',
    becomes: 'dropped',
    note: 'holds paths of the client; never forwarded, never logged',
  },
]

export const RESPONSES_RULES = ruleTable(RESPONSES_MEMBERS)

/** Item types of `input`. An item of no type is a message. */
export const RESPONSES_ITEMS: readonly MemberRule[] = [
  {
    member: 'message',
    becomes: 'mapped',
    note: 'a message; `developer` is `system`; parts `input_text`, `output_text`, `text`, `refusal`, `input_image` (by URL), `input_file` (by data)',
  },
  { member: 'agent_message', becomes: 'mapped', note: 'an assistant message' },
  {
    member: 'reasoning',
    becomes: 'mapped',
    note: 'earlier reasoning of the assistant message that follows',
  },
  { member: 'function_call', becomes: 'mapped', note: 'a tool call' },
  {
    member: 'function_call_output',
    becomes: 'mapped',
    note: 'a tool message; images follow as a user message',
  },
  { member: 'custom_tool_call', becomes: 'mapped', note: 'a tool call with one argument, `input`' },
  { member: 'custom_tool_call_output', becomes: 'mapped', note: 'a tool message' },
  {
    member: 'item_reference',
    becomes: 'refused',
    note: 'this service keeps no items; ask with "store": false, so that your client sends them whole (references to reasoning are dropped)',
  },
  { member: 'web_search_call', becomes: 'dropped', note: 'a hosted tool' },
  { member: 'file_search_call', becomes: 'dropped', note: 'a hosted tool' },
  { member: 'computer_call', becomes: 'dropped', note: 'a hosted tool' },
  { member: 'computer_call_output', becomes: 'dropped', note: 'a hosted tool' },
  { member: 'code_interpreter_call', becomes: 'dropped', note: 'a hosted tool' },
  { member: 'image_generation_call', becomes: 'dropped', note: 'a hosted tool' },
  { member: 'mcp_list_tools', becomes: 'dropped', note: 'a hosted tool' },
  { member: 'mcp_call', becomes: 'dropped', note: 'a hosted tool' },
  { member: 'mcp_approval_request', becomes: 'dropped', note: 'a hosted tool' },
  { member: 'mcp_approval_response', becomes: 'dropped', note: 'a hosted tool' },
  { member: 'tool_search_call', becomes: 'dropped', note: 'a hosted tool' },
  { member: 'tool_search_output', becomes: 'dropped', note: 'a hosted tool' },
]

export const ITEM_RULES = ruleTable(RESPONSES_ITEMS)

/** Tool types; all others are hosted tools, which this service has none of, and are dropped. */
export const RESPONSES_TOOLS: readonly MemberRule[] = [
  { member: 'function', becomes: 'mapped', note: 'a function' },
  { member: 'custom', becomes: 'mapped', note: 'a function with one text argument, `input`' },
  {
    member: 'namespace',
    becomes: 'mapped',
    note: 'its tools as functions named `<namespace>__<name>`; calls come back with both; two of one name are refused',
  },
]
