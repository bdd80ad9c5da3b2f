import type { AnswerHead } from './answer-head.ts'
import type { AnswerChoice, ProviderAnswer } from './provider-answer.ts'
import type { UsageReport } from './usage-tally.ts'

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

/** The member `usage` of a chat completion, whole or streamed. */
export function chatUsage(usage: UsageReport): object {
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
