import { dropped, mapped, refused, ruleTable, type MemberRule } from '../completion/member-rules.ts'

/** Every member of a request to `/v1/messages` and how it is treated. */
export const MESSAGES_MEMBERS: readonly MemberRule[] = [
  mapped('model', 'the route selector'),
  mapped('messages', 'messages; see the table of blocks'),
  mapped(
    'system',
    'the first system message, less a line `x-anthropic-billing-header:` at its head',
  ),
  mapped('max_tokens', '`max_tokens`'),
  mapped('stream', 'streamed where it is exactly `true`'),
  mapped('temperature', '`temperature`'),
  mapped('top_p', '`top_p`'),
  mapped('top_k', '`top_k`'),
  mapped(
    'stop_sequences',
    '`stop`; the answer names the one that ended it where the provider says so (`stop_reason` of vLLM, `matched_stop` of SGLang), else its `stop_reason` is `end_turn`',
  ),
  mapped('tools', '`tools`; those with a type of their own are tools of the vendor and dropped'),
  mapped(
    'tool_choice',
    '`tool_choice` and `parallel_tool_calls`; a required call is dropped where it is of a tool of the vendor, or no other tool is offered',
  ),
  mapped(
    'thinking',
    '`disabled` or absent is `off`, `enabled` goes by its budget (2,048 `low`, 8,192 `medium`, 32,768 `high`, more `max`), `adaptive` is the default of the route; each route takes the effort nearest to it that it has, one without reasoning takes none',
  ),
  mapped(
    'output_config',
    '`effort` of thinking that is enabled or adaptive, ahead of its budget; `format` becomes `response_format`; the rest is dropped',
  ),
  mapped('output_format', '`response_format`'),
  mapped(
    'cache_control',
    'accepted here, in blocks and in tools; the provider caches prefixes by itself, and usage shows what it read and wrote',
  ),
  mapped('failover', '`failover`, as on chat completions'),
  mapped('attestation', 'what the provider must meet; never forwarded'),
  refused('thread', 'this service keeps no conversations; send "messages" whole', {
    details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] },
  }),
  dropped('metadata', 'holds ids of users and devices; never forwarded, never logged'),
  dropped('context_management', 'nothing is cleared or compacted here'),
  dropped('mcp_servers', 'this service calls no other'),
  dropped('container', 'this service runs no code'),
  dropped('service_tier', 'there is one tier'),
  dropped('inference_geo', 'regions are part of the route selector'),
  dropped('speed', 'there is one speed'),
  dropped('betas', 'betas have no meaning here'),
  dropped('diagnostics', 'never forwarded, never logged'),
]

export const MESSAGES_RULES = ruleTable(MESSAGES_MEMBERS)

/** Types of content blocks, in messages and in tool results. */
export const MESSAGES_BLOCKS: readonly MemberRule[] = [
  mapped('text', 'text; citations are dropped'),
  mapped('image', 'an image, by data or by URL'),
  mapped('document', 'a file by data, or its text or content; one by URL is refused'),
  mapped('search_result', 'its title, source and text'),
  mapped('thinking', 'earlier reasoning; the signature is not looked at'),
  mapped('tool_use', 'a tool call'),
  mapped(
    'tool_result',
    'a tool message; its images and files follow as a user message; `is_error` is dropped',
  ),
  dropped('redacted_thinking', 'encrypted for the vendor'),
  ...[
    'server_tool_use',
    'web_search_tool_result',
    'web_fetch_tool_result',
    'code_execution_tool_result',
    'bash_code_execution_tool_result',
    'text_editor_code_execution_tool_result',
    'tool_search_tool_result',
  ].map((type) => dropped(type, "a tool of the vendor's")),
  dropped('tool_reference', 'all tools are there from the start'),
  dropped('mcp_tool_use', "a tool of the vendor's"),
  dropped('mcp_tool_result', "a tool of the vendor's"),
  dropped('container_upload', 'this service runs no code'),
  dropped('compaction', 'nothing is compacted here'),
]

export const BLOCK_RULES = ruleTable(MESSAGES_BLOCKS)
