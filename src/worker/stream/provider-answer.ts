import type { Steps } from '../json/steps.ts'
import { BrokenStream } from './broken-stream.ts'
import { choiceIndex } from './choice-index.ts'
import type { Delta } from './delta.ts'
import { readFinishReason } from './finish-reason.ts'
import { optionalObject, optionalObjects, type JsonObject } from './json-object.ts'
import { readLogprobs, type Logprobs } from './logprobs.ts'
import { readMessageText } from './message-text.ts'
import { producedTextBytes } from './produced-text.ts'
import { refuseProviderError } from './provider-error.ts'
import { readResponseId } from './response-id.ts'
import type { ReadOptions } from './provider-stream.ts'
import { readStopSequence } from './stop-sequence.ts'
import { finishReasonOfCalls, readToolCalls, type ToolCall } from './tool-calls.ts'
import { UsageTally } from './usage-tally.ts'

/** A provider's whole answer in the internal format. */
export interface ProviderAnswer {
  /** At least one, in the order of their indexes: clients and formats with a single answer take the first. */
  readonly choices: readonly AnswerChoice[]
  readonly tally: UsageTally
  readonly providerResponseId: string | undefined
}

/** One of the alternatives of an answer; members that were not sent are undefined or empty. */
export interface AnswerChoice {
  readonly index: number
  readonly reasoning: string | undefined
  readonly content: string | undefined
  readonly refusal: string | undefined
  readonly toolCalls: readonly ToolCall[]
  readonly logprobs: Logprobs | null
  readonly finishReason: string
  /** The text that ended the choice, where the provider reports it. */
  readonly stopSequence?: string | undefined
}

/**
 * Reads an answer that is not streamed, in steps. Only listed fields are read, so that nothing that identifies the provider
 * leaks.
 * @throws BrokenStream on an error object, malformed members, no choices, or a choice without a valid finish reason
 */
export function* readProviderAnswer(
  answer: JsonObject,
  options: ReadOptions,
): Steps<ProviderAnswer> {
  refuseProviderError(answer)
  const produced = optionalObjects(answer['choices'])
  const choices: AnswerChoice[] = []
  for (const [position, choice] of produced.entries()) {
    choices.push(yield* readChoice(choice, position, options))
  }
  if (choices.length === 0) throw new BrokenStream('malformed')
  const tally = new UsageTally()
  for (const { message } of produced) tally.addText(producedTextBytes(message))
  tally.take(answer['usage'])
  const { id } = answer
  return {
    choices: choices.toSorted((left, right) => left.index - right.index),
    tally,
    providerResponseId: readResponseId(id),
  }
}

function* readChoice(
  choice: JsonObject,
  position: number,
  options: ReadOptions,
): Steps<AnswerChoice> {
  const finishReason = readFinishReason(choice['finish_reason'])
  if (finishReason === undefined) throw new BrokenStream('no_finish')
  const message = optionalObject(choice['message'])
  if (message === undefined) throw new BrokenStream('malformed')
  const { content, reasoning, refusal } = readMessageText(message)
  const { toolCalls, form } = readToolCalls(message, options.id, finishReason)
  const stripped = reasoning !== undefined && !options.includeReasoning
  return {
    index: choiceIndex(choice, position),
    reasoning: stripped ? undefined : reasoning,
    content,
    refusal,
    toolCalls,
    // Log probabilities contain the tokens, including those of hidden reasoning.
    logprobs: stripped ? null : yield* readLogprobs(choice['logprobs']),
    finishReason: finishReasonOfCalls(finishReason, form),
    stopSequence: readStopSequence(choice),
  }
}

/** A finished choice as one delta, for encoders that are driven by deltas. */
export function choiceDelta(choice: AnswerChoice): Delta {
  const { reasoning, content, refusal, toolCalls, logprobs } = choice
  return {
    reasoning,
    content: content || undefined,
    refusal,
    toolCalls: toolCalls.map((call, index) => ({ index, ...call })),
    logprobs,
  }
}
