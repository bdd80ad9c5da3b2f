import type { Bytes } from '../../protocol/bytes.ts'

/**
 * Reads a provider's refusal of a request. Every server has its own error body: an object or a string under `error`,
 * a flat object, `detail` as text, as a list or as JSON in text, HTML. The text only decides between kinds of failure
 * and is never passed on.
 */
export type RefusalKind = 'rejected' | 'context_length' | 'content_policy'

/** The first match wins. The comments name the servers that use these phrases. */
const PATTERNS: readonly (readonly [RegExp, RefusalKind])[] = [
  // OpenAI, Groq, Azure; llama.cpp; Anthropic; LMDeploy
  [/context_length_exceeded|exceed_context_size|context_window_exceeded/i, 'context_length'],
  [/(input|prompt)_too_long|input_length_error/i, 'context_length'],
  // vLLM, OpenRouter, DeepSeek, Fireworks, Mistral, xAI, llama.cpp, SGLang, NIM
  [
    /(maximum|max|model's|available)\s+(context|model|prompt|input|sequence)\s+(length|size|window)/i,
    'context_length',
  ],
  // OpenAI, Ollama, MiniMax, LM Studio
  [/(exceed\w*|than)\s+(the\s+)?context\s+(length|size|window)/i, 'context_length'],
  [/context\s+(length|size|window)\s+(is\s+)?(exceed|overflow|limit)/i, 'context_length'],
  // Anthropic, Bedrock, Fireworks; Groq
  [/(prompt|input|request|messages?) (is|are) too long/i, 'context_length'],
  [/reduce the length of (the|your) (messages|prompt|input)/i, 'context_length'],
  // TGI, Together
  [/`?inputs`?\s[^.]{0,80}must (be <=|have less than)/i, 'context_length'],
  // Gemini; Cohere; Kimi; GLM; Qwen; TensorRT-LLM
  [/input token count[^.]{0,40}exceeds|too many (input )?tokens/i, 'context_length'],
  [/exceeded model token limit|prompt exceeds max length/i, 'context_length'],
  [/range of input length should be|max_num_tokens/i, 'context_length'],
  // OpenAI, Azure
  [/content[_ ](policy|filter|moderation)|content management policy/i, 'content_policy'],
  [/responsible ?ai ?policy|usage polic(y|ies)|safety system/i, 'content_policy'],
  // OpenRouter, Together; DeepSeek; Qwen; GLM; MiniMax; Gemini; Bedrock
  [/requires moderation|moderation_blocked|(was|been|input|content) flagged/i, 'content_policy'],
  [/content exists risk|data_?inspection_?failed|inappropriate content/i, 'content_policy'],
  [/(unsafe or |new_|_)sensitive|sensitive (content|words?)/i, 'content_policy'],
  [/prohibited[_ ]content|guardrail/i, 'content_policy'],
]

/** Members that hold a server's own text; others, such as `input`, may quote the caller. */
const WORD_MEMBERS: ReadonlySet<string> = new Set([
  'code',
  'description',
  'detail',
  'details',
  'error',
  'error_type',
  'errors',
  'innererror',
  'message',
  'metadata',
  'msg',
  'raw',
  'reason',
  'title',
  'type',
])

const FIELD_MEMBERS: ReadonlySet<string> = new Set(['error', 'errors', 'detail', 'param', 'loc'])

/** Real error bodies have at most five levels; JSON inside text counts as one more. */
const MAX_NESTING = 8

/** Characters read of a body that is not valid JSON: the server's own text is at the beginning. */
const LOOSE_CHARACTERS = 1000

const decoder = new TextDecoder()

/** The kind of refusal that a body describes; `rejected` where it is not more specific. */
export function refusalKind(body: Bytes): RefusalKind {
  const words = wordsOf(body, WORD_MEMBERS).join('\n')
  return PATTERNS.find(([pattern]) => pattern.test(words))?.[1] ?? 'rejected'
}

/** Phrases about the account rather than the content. */
const ACCOUNT =
  /account|organi[sz]ation|api.?key|billing|credit|quota|permission|suspended|disabled/i

/**
 * Whether a body that forbids something refers to the content of this request rather than to the router's account.
 */
export function mentionsModeration(body: Bytes): boolean {
  const words = wordsOf(body, WORD_MEMBERS).join('\n')
  return refusalKind(body) === 'content_policy' && !ACCOUNT.test(words)
}

/** The request field that a body names, as `param` or at the end of a `loc` path; undefined where it names none. */
export function invalidField(body: Bytes): string | undefined {
  return parsed(decoder.decode(body)) === undefined
    ? undefined
    : wordsOf(body, FIELD_MEMBERS).at(-1)
}

function wordsOf(body: Bytes, members: ReadonlySet<string>): readonly string[] {
  const text = decoder.decode(body)
  const value = parsed(text)
  return value === undefined
    ? [text.slice(0, LOOSE_CHARACTERS)]
    : stringsIn(value, members, MAX_NESTING)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The strings under the given members, in order; JSON inside text is parsed. */
function stringsIn(value: unknown, members: ReadonlySet<string>, depth: number): readonly string[] {
  if (depth === 0) return []
  const inner = (child: unknown) => stringsIn(child, members, depth - 1)
  if (typeof value === 'string') {
    const folded = /^\s*[[{]/.test(value) ? parsed(value) : undefined
    return folded === undefined ? [value] : inner(folded)
  }
  if (Array.isArray(value)) return value.flatMap(inner)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value)
    .filter(([name]) => members.has(name))
    .flatMap(([, child]) => inner(child))
}
