import type { AnswerEncoder } from '../completion/format.ts'
import { errorBody } from '../http/errors.ts'
import type { AnswerHead } from '../stream/answer-head.ts'
import { chatChunks } from '../stream/chat-chunks.ts'
import type { AnswerChoice, ProviderAnswer } from '../stream/provider-answer.ts'
import type { UsageReport } from '../stream/usage-tally.ts'

/** Writes the chunks of a streamed chat completion. The last one carries `usage` where the client asked for it. */
export function chatStreamEncoder(head: AnswerHead, includeUsage: boolean): AnswerEncoder {
  const { start, ...chunks } = chatChunks(head)
  return {
    ...chunks,
    finish: () => '',
    close: ({ finishReason, usage }, service) => {
      const shown = includeUsage && usage !== undefined && { usage: chatUsage(usage) }
      const tail = JSON.stringify({ ...shown, service }).slice(1)
      return `${start}{},"finish_reason":${JSON.stringify(finishReason)}}],${tail}\n\ndata: [DONE]\n\n`
    },
    // No `[DONE]` follows, so that no client mistakes the answer for a complete one.
    fail: (error) => `data: ${JSON.stringify(errorBody(error))}\n\n`,
  }
}

/** The body of a chat completion that is not streamed. */
export function chatCompletionBody(
  { choices }: ProviderAnswer,
  { id, created, model }: AnswerHead,
  usage: UsageReport | undefined,
  service: object,
): object {
  return {
    id,
    object: 'chat.completion',
    created,
    model,
    choices: choices.map(choiceMembers),
    ...(usage !== undefined && { usage: chatUsage(usage) }),
    service,
  }
}

function choiceMembers(choice: AnswerChoice): object {
  const { index, reasoning, content, refusal, toolCalls, logprobs, finishReason } = choice
  return {
    index,
    message: {
      role: 'assistant',
      content: content ?? null,
      refusal: refusal ?? null,
      ...(reasoning !== undefined && { reasoning }),
      ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
    },
    logprobs,
    finish_reason: finishReason,
  }
}

function chatUsage(usage: UsageReport): object {
  const { promptTokens, completionTokens, cachedTokens, cacheWriteTokens, reasoningTokens } = usage
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    ...(cachedTokens !== undefined && {
      prompt_tokens_details: {
        cached_tokens: cachedTokens,
        ...(cacheWriteTokens !== undefined && { cache_write_tokens: cacheWriteTokens }),
      },
    }),
    ...(reasoningTokens !== undefined && {
      completion_tokens_details: { reasoning_tokens: reasoningTokens },
    }),
  }
}
