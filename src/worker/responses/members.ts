import { dropped, mapped, refused, ruleTable, type MemberRule } from '../completion/member-rules.ts'

const STATELESS = 'this service keeps no responses; send the whole conversation in "input"'

/** Every member of a request to `/v1/responses` and how it is treated. */
export const RESPONSES_MEMBERS: readonly MemberRule[] = [
  mapped('model', 'the route selector'),
  mapped('input', 'messages; see the table of items'),
  mapped('instructions', 'the first system message'),
  mapped('stream', 'whether the answer is streamed'),
  mapped('max_output_tokens', '`max_tokens`'),
  mapped('temperature', '`temperature`'),
  mapped('top_p', '`top_p`'),
  mapped('top_logprobs', '`logprobs` and `top_logprobs`'),
  mapped(
    'reasoning',
    '`effort` on the ladder of the route, `none` is `off`; reasoning is shown as summary whatever `summary` says',
  ),
  mapped('text', '`format` becomes `response_format`; `verbosity` is dropped'),
  mapped('tools', '`tools`; see the table of tools'),
  mapped(
    'tool_choice',
    '`tool_choice`; a hosted tool counts as `auto`, and a required call is dropped where no function is offered',
  ),
  mapped('parallel_tool_calls', '`parallel_tool_calls`'),
  mapped(
    'include',
    '`reasoning.encrypted_content` gives null, `message.output_text.logprobs` asks for log probabilities; the rest is dropped',
  ),
  mapped('metadata', 'repeated in the answer, not forwarded'),
  mapped('store', 'taken as false, and answered so'),
  mapped('user', '`user`'),
  mapped('failover', '`failover`, as on chat completions'),
  mapped('attestation', 'what the provider must meet; never forwarded'),
  mapped('include_reasoning', '`include_reasoning`, as on chat completions'),
  refused('previous_response_id', STATELESS),
  refused('conversation', STATELESS),
  refused('background', 'this service keeps no responses; ask with "stream" for long answers', {
    unless: [false],
  }),
  refused('truncation', 'input is never cut; only "disabled" is supported', {
    unless: ['disabled'],
  }),
  refused('prompt', 'this service keeps no prompt templates; send "instructions" and "input"'),
  dropped('max_tool_calls', 'it limits hosted tools, of which there are none'),
  dropped('stream_options', 'events are never obfuscated'),
  dropped('service_tier', 'there is one tier'),
  dropped('context_management', 'nothing is compacted here'),
  dropped('moderation', 'nothing is moderated here'),
  dropped('prompt_cache_key', 'prefix caches are separate for each customer'),
  dropped('prompt_cache_retention', 'the provider decides'),
  dropped('prompt_cache_options', 'the provider decides'),
  dropped('safety_identifier', 'never forwarded'),
  dropped('client_metadata', 'holds paths of the client; never forwarded, never logged'),
]

export const RESPONSES_RULES = ruleTable(RESPONSES_MEMBERS)

/** Item types of `input`. An item without a type is a message. */
export const RESPONSES_ITEMS: readonly MemberRule[] = [
  mapped(
    'message',
    'a message; `developer` is `system`; parts `input_text`, `output_text`, `text`, `refusal`, `input_image` (by URL), `input_file` (by data)',
  ),
  mapped('agent_message', 'an assistant message'),
  mapped('reasoning', 'earlier reasoning of the assistant message that follows'),
  mapped('function_call', 'a tool call'),
  mapped('function_call_output', 'a tool message; images follow as a user message'),
  mapped('custom_tool_call', 'a tool call with one argument, `input`'),
  mapped('custom_tool_call_output', 'a tool message'),
  refused(
    'item_reference',
    'this service keeps no items; ask with "store": false, so that your client sends them whole (references to reasoning are dropped)',
  ),
  ...[
    'web_search_call',
    'file_search_call',
    'computer_call',
    'computer_call_output',
    'code_interpreter_call',
    'image_generation_call',
    'mcp_list_tools',
    'mcp_call',
    'mcp_approval_request',
    'mcp_approval_response',
    'tool_search_call',
    'tool_search_output',
  ].map((type) => dropped(type, 'a hosted tool')),
]

export const ITEM_RULES = ruleTable(RESPONSES_ITEMS)

/** Tool types. All others are hosted tools, which this service does not have; they are dropped. */
export const RESPONSES_TOOLS: readonly MemberRule[] = [
  mapped('function', 'a function'),
  mapped('custom', 'a function with one text argument, `input`'),
  mapped(
    'namespace',
    'its tools as functions named `<namespace>__<name>`; calls come back with both; two of one name are refused',
  ),
]
