import type { ChatRequest } from './chat-request.ts'

/** The router's own token counts: for reservations, and for billing where no provider gave a count. */

/** Few tokens of any current tokenizer are shorter than this on average, whatever the language. */
const BYTES_PER_TOKEN = 3
const TOKENS_PER_MESSAGE = 16
const TOKENS_PER_IMAGE = 4096

/** ceil(UTF-8 bytes of text and tools / 3) + 16 per message + 4,096 per image or other medium. */
export function estimatePromptTokens(request: ChatRequest): number {
  const { messages, members } = request
  const tools = members.get('tools')
  const toolBytes = tools === undefined ? 0 : tools.end - tools.start
  return (
    Math.ceil((messages.textBytes + toolBytes) / BYTES_PER_TOKEN) +
    TOKENS_PER_MESSAGE * messages.count +
    TOKENS_PER_IMAGE * messages.images
  )
}

/** ceil(UTF-8 bytes of content, reasoning and tool arguments / 3). */
export function estimateCompletionTokens(producedBytes: number): number {
  return Math.ceil(producedBytes / BYTES_PER_TOKEN)
}
