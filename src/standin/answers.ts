import type {
  ChatCompletionRequest,
  ChatMessage,
  FixtureResponse,
  LLMock,
  TranscriptionResponse,
} from '@copilotkit/aimock'
import { sampleValue } from './sample-value.ts'

/**
 * The stand-in's answers. The same request always gets the same text, so that people see that there is no model behind
 * it, and tests know what to expect.
 */
export function addAnswers(mock: LLMock): void {
  mock.on({ endpoint: 'chat', predicate: wantsTool }, toolCall, { chunkSize: CHUNK_CHARACTERS })
  mock.on({ endpoint: 'chat' }, words, { chunkSize: CHUNK_CHARACTERS })
  mock.onTranscription(TRANSCRIPT)
}

/** The transcript of every file. */
export const TRANSCRIPT_TEXT =
  'The stand-in provider heard this file, and says this about every file.'

const CHUNK_CHARACTERS = 16
const MAX_COUNT = 10_000
const ECHOED_CHARACTERS = 200

const TRANSCRIPT: TranscriptionResponse = {
  transcription: {
    text: TRANSCRIPT_TEXT,
    language: 'english',
    duration: 4.2,
    segments: [
      { id: 0, start: 0, end: 2.1, text: 'The stand-in provider heard this file,' },
      { id: 1, start: 2.1, end: 4.2, text: ' and says this about every file.' },
    ],
  },
}

/** Whether to answer with a call of the first tool: the request offers tools, and its last message is from the user. */
function wantsTool(request: ChatCompletionRequest): boolean {
  // Some clients write null for tools that they were not given.
  const isOffered = (request.tools?.length ?? 0) > 0
  return isOffered && request.tool_choice !== 'none' && request.messages.at(-1)?.role === 'user'
}

function toolCall(request: ChatCompletionRequest): FixtureResponse {
  const tool = request.tools?.[0]?.function
  const args = JSON.stringify(sampleValue(tool?.parameters))
  return {
    toolCalls: [{ name: tool?.name ?? 'unknown', arguments: args }],
    ...thoughts(request),
    usage: usage(request, args),
  }
}

function words(request: ChatCompletionRequest): FixtureResponse {
  const content = contentFor(request)
  return { content, ...thoughts(request), usage: usage(request, content) }
}

function contentFor(request: ChatCompletionRequest): string {
  if (request.response_format?.type === 'json_object') return '{"answer":"Berlin"}'
  if (request.response_format?.type === 'json_schema') {
    return JSON.stringify(sampleValue(schemaOf(request.response_format)))
  }
  const last = request.messages.at(-1)
  if (last === undefined) return 'Hello from the stand-in provider.'
  if (last.role === 'tool') return `The tool answered: ${textOf(last)}`
  const image = imageOf(last)
  if (image !== undefined) return `The stand-in provider was shown an image of ${image} bytes.`
  const count = /\bcount to (\d{1,5})\b/i.exec(textOf(last))?.[1]
  if (count !== undefined) return countTo(Math.min(Number(count), MAX_COUNT))
  return `Hello from the stand-in provider. You said: ${textOf(last).slice(0, ECHOED_CHARACTERS)}`
}

/** The JSON Schema of a `json_schema` response format. */
function schemaOf(format: Readonly<Record<string, unknown>>): unknown {
  const named = format['json_schema']
  return typeof named === 'object' && named !== null && 'schema' in named ? named.schema : undefined
}

function countTo(end: number): string {
  return Array.from({ length: end }, (_, i) => i + 1).join(' ')
}

/** Reasoning text, if the request asks for it by one of the known parameters. */
function thoughts(request: ChatCompletionRequest): { reasoning?: string } {
  const effort = request['reasoning_effort']
  const kwargs = request['chat_template_kwargs']
  const switchedOn =
    typeof kwargs === 'object' &&
    kwargs !== null &&
    'enable_thinking' in kwargs &&
    kwargs.enable_thinking === true
  const requested = (typeof effort === 'string' && effort !== 'none') || switchedOn
  return requested ? { reasoning: 'A stand-in does not think; it repeats what it was told.' } : {}
}

function textOf(message: ChatMessage): string {
  if (typeof message.content === 'string') return message.content
  return (message.content ?? []).map((part) => part.text ?? '').join('')
}

/** Bytes of the first image of a message, undefined when it has none. */
function imageOf(message: ChatMessage): number | undefined {
  if (typeof message.content === 'string') return undefined
  const image = message.content?.find((part) => part.type === 'image_url')?.['image_url']
  if (typeof image !== 'object' || image === null || !('url' in image)) return undefined
  return Buffer.from(String(image.url).replace(/^[^,]*,/, ''), 'base64').length
}

/** Counts one token for every four characters, rounded up, plus four for every message. */
function usage(request: ChatCompletionRequest, answer: string) {
  const requested = request.messages.reduce(
    (sum, message) => sum + tokensIn(textOf(message)) + 4,
    0,
  )
  const answered = tokensIn(answer) + tokensIn(thoughts(request).reasoning ?? '')
  return {
    prompt_tokens: requested,
    completion_tokens: answered,
    total_tokens: requested + answered,
  }
}

function tokensIn(text: string): number {
  return Math.ceil(text.length / 4)
}
