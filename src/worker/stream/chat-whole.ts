import { fromUtf8 } from '../../protocol/bytes.ts'
import { BrokenStream } from './broken-stream.ts'
import type { ChatStreamOptions } from './chat-stream.ts'
import { readFinishReason, type FinishReason } from './finish-reason.ts'
import { optionalObject, optionalObjects, parseJsonObject, type JsonObject } from './json-object.ts'
import { readLogprobs, type Logprobs } from './logprobs.ts'
import { readMessageText, utf8Length } from './message-text.ts'
import { refuseProviderError } from './provider-error.ts'
import type { TokenUsage } from './token-usage.ts'
import { readToolCalls, type ToolCall } from './tool-calls.ts'
import { UsageTally } from './usage-tally.ts'

type CompletionOptions = Omit<ChatStreamOptions, 'includeUsage'>

/** A provider's whole answer, rebuilt for the client. */
export interface WholeCompletion {
  /**
   * The body for the client, with `service` in it. `estimate` stands in for usage that the provider did not give.
   */
  readonly json: (service: object, estimate?: TokenUsage) => string
  /** The provider's counts; undefined where it gave none. */
  readonly usage: TokenUsage | undefined
  readonly providerResponseId: string | undefined
  readonly finishReasons: readonly FinishReason[]
  /** UTF-8 bytes of content, reasoning, refusal and tool arguments rebuilt for the client. */
  readonly deliveredTextBytes: number
}

interface Choice {
  readonly index: number
  readonly message: Message
  readonly logprobs: Logprobs | null
  readonly finish_reason: FinishReason
}

interface Message {
  readonly role: 'assistant'
  readonly content: string | null
  readonly refusal: string | null
  readonly reasoning?: string
  readonly reasoning_content?: string
  readonly tool_calls?: readonly ToolCall[]
}

/**
 * Rebuilds a non-stream answer from an allow-list of fields (interface: "Non-streaming response"), so that
 * nothing of the provider's identity leaks. Blank lines before the body are tolerated. Throws `BrokenStream` on an error
 * object, malformed JSON or members, no choices, and on a choice without a sound finish reason.
 */
export function rebuildCompletion(body: Uint8Array, options: CompletionOptions): WholeCompletion {
  const answer = parseJsonObject(decode(body))
  refuseProviderError(answer)
  const choices = optionalObjects(answer['choices']).map((choice, position) =>
    rebuildChoice(choice, position, options),
  )
  if (choices.length === 0) throw new BrokenStream('malformed')
  const tally = new UsageTally()
  tally.take(answer['usage'])
  const { id, created, model } = options
  const providerId = answer['id']
  return {
    json: (service, estimate) => {
      const usage = tally.show(estimate)
      const fixed = { id, object: 'chat.completion', created, model, choices }
      return JSON.stringify({ ...fixed, ...(usage !== undefined && { usage }), service })
    },
    usage: tally.tokens,
    providerResponseId:
      typeof providerId === 'string' && providerId !== '' ? providerId : undefined,
    finishReasons: choices.map((choice) => choice.finish_reason),
    deliveredTextBytes: choices.reduce((sum, choice) => sum + textBytes(choice.message), 0),
  }
}

function rebuildChoice(choice: JsonObject, position: number, options: CompletionOptions): Choice {
  const reason = readFinishReason(choice['finish_reason'])
  if (reason === undefined) throw new BrokenStream('no_finish')
  const message = optionalObject(choice['message'])
  if (message === undefined) throw new BrokenStream('malformed')
  const given = choice['index']
  const index = typeof given === 'number' && Number.isSafeInteger(given) ? given : position
  const { content, reasoning, refusal } = readMessageText(message)
  const stripped = reasoning !== undefined && !options.includeReasoning
  const shown = stripped ? undefined : reasoning
  const toolCalls = readToolCalls(message['tool_calls'], options.id)
  return {
    index,
    message: {
      role: 'assistant',
      content: content ?? null,
      refusal: refusal ?? null,
      ...(shown !== undefined && { reasoning: shown }),
      ...(shown !== undefined && options.reasoningAlias && { reasoning_content: shown }),
      ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
    },
    // Log probabilities spell out the tokens, those of stripped reasoning too.
    logprobs: stripped ? null : readLogprobs(choice['logprobs']),
    finish_reason: reason,
  }
}

function textBytes(message: Message): number {
  const called = (message.tool_calls ?? []).map((call) => call.function.arguments)
  return utf8Length([message.content, message.reasoning, message.refusal, ...called].join(''))
}

/** A byte order mark is no JSON whitespace, yet some servers send one. */
function decode(body: Uint8Array): string {
  try {
    const text = fromUtf8(body)
    return text.startsWith('\uFEFF') ? text.slice(1) : text
  } catch {
    throw new BrokenStream('malformed')
  }
}
