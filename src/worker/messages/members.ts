import { ruleTable, type MemberRule } from '../completion/member-rules.ts'

/** Every member of a request to `/v1/messages` and what becomes of it. */
export const MESSAGES_MEMBERS: readonly MemberRule[] = [
  { member: 'model', becomes: 'mapped', note: 'the route selector' },
  { member: 'messages', becomes: 'mapped', note: 'messages; see the table of blocks' },
  {
    member: 'system',
    becomes: 'mapped',
    note: 'the first system message, less a block that begins with `x-anthropic-billing-header:`',
  },
  { member: 'max_tokens', becomes: 'mapped', note: '`max_tokens`' },
  { member: 'stream', becomes: 'mapped', note: 'streamed where it is exactly `true`' },
  { member: 'temperature', becomes: 'mapped', note: '`temperature`' },
  { member: 'top_p', becomes: 'mapped', note: '`top_p`' },
  { member: 'top_k', becomes: 'mapped', note: '`top_k`' },
  { member: 'stop_sequences', becomes: 'mapped', note: '`stop`' },
  {
    member: 'tools',
    becomes: 'mapped',
    note: '`tools`; those with a type of their own are tools of the vendor and dropped',
  },
  { member: 'tool_choice', becomes: 'mapped', note: '`tool_choice` and `parallel_tool_calls`' },
  {
    member: 'thinking',
    becomes: 'mapped',
    note: '`disabled` or absent is `off`, `enabled` goes by its budget (2,048 `low`, 8,192 `medium`, 32,768 `high`, more `max`), `adaptive` is the default of the route; each route takes the effort nearest to it that it has',
  },
  {
    member: 'output_config',
    becomes: 'mapped',
    note: '`effort` of thinking that is enabled or adaptive, ahead of its budget; `format` becomes `response_format`; the rest is dropped',
  },
  { member: 'output_format', becomes: 'mapped', note: '`response_format`' },
  {
    member: 'cache_control',
    becomes: 'mapped',
    note: 'accepted here, in blocks and in tools; the provider caches prefixes by itself, and usage shows what it read and wrote',
  },
  { member: 'failover', becomes: 'mapped', note: '`failover`, as on chat completions' },
  {
    member: 'thread',
    becomes: 'refused',
    note: 'this service keeps no conversations; send "messages" whole',
    details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] },
  },
  {
    member: 'metadata',
    becomes: 'dropped',
    note: 'holds ids of users and devices; never forwarded, never logged',
  },
  {
    member: 'context_management',
    becomes: 'dropped',
    note: 'nothing is cleared or compacted here',
  },
  { member: 'mcp_servers', becomes: 'dropped', note: 'this service calls no other' },
  { member: 'container', becomes: 'dropped', note: 'this service runs no code' },
  { member: 'service_tier', becomes: 'dropped', note: 'there is one tier' },
  { member: 'inference_geo', becomes: 'dropped', note: 'regions are part of the route selector' },
  { member: 'speed', becomes: 'dropped', note: 'there is one speed' },
  { member: 'betas', becomes: 'dropped', note: 'betas have no meaning here' },
  { member: 'diagnostics', becomes: 'dropped', note: 'never forwarded, never logged' },
]

export const MESSAGES_RULES = ruleTable(MESSAGES_MEMBERS)

/** Types of content blocks, in messages and in tool results. */
export const MESSAGES_BLOCKS: readonly MemberRule[] = [
  { member: 'text', becomes: 'mapped', note: 'text; citations are dropped' },
  { member: 'image', becomes: 'mapped', note: 'an image, by data or by URL' },
  {
    member: 'document',
    becomes: 'mapped',
    note: 'a file by data, or its text or content; one by URL is refused',
  },
  { member: 'search_result', becomes: 'mapped', note: 'its title, source and text' },
  {
    member: 'thinking',
    becomes: 'mapped',
    note: 'earlier reasoning; the signature is not looked at',
  },
  { member: 'tool_use', becomes: 'mapped', note: 'a tool call' },
  {
    member: 'tool_result',
    becomes: 'mapped',
    note: 'a tool message; its images and files follow as a user message; `is_error` is dropped',
  },
  { member: 'redacted_thinking', becomes: 'dropped', note: 'nobody here can read it' },
  { member: 'server_tool_use', becomes: 'dropped', note: "a tool of the vendor's" },
  { member: 'web_search_tool_result', becomes: 'dropped', note: "a tool of the vendor's" },
  { member: 'web_fetch_tool_result', becomes: 'dropped', note: "a tool of the vendor's" },
  { member: 'code_execution_tool_result', becomes: 'dropped', note: "a tool of the vendor's" },
  { member: 'bash_code_execution_tool_result', becomes: 'dropped', note: "a tool of the vendor's" },
  {
    member: 'text_editor_code_execution_tool_result',
    becomes: 'dropped',
    note: "a tool of the vendor's",
  },
  { member: 'tool_search_tool_result', becomes: 'dropped', note: "a tool of the vendor's" },
  { member: 'tool_reference', becomes: 'dropped', note: 'all tools are there from the start' },
  { member: 'mcp_tool_use', becomes: 'dropped', note: "a tool of the vendor's" },
  { member: 'mcp_tool_result', becomes: 'dropped', note: "a tool of the vendor's" },
  { member: 'container_upload', becomes: 'dropped', note: 'this service runs no code' },
  { member: 'compaction', becomes: 'dropped', note: 'nothing is compacted here' },
]

export const BLOCK_RULES = ruleTable(MESSAGES_BLOCKS)
