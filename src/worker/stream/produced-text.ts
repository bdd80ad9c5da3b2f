import { isJsonObject, printJson, type JsonObject } from './json-object.ts'
import { utf8Length } from './message-text.ts'
import type { CallForm } from './tool-calls.ts'

/**
 * UTF-8 bytes of the text in a delta or a message: content, reasoning, refusal, and arguments of calls. It counts everything
 * the provider produced, even what the client does not see, because that is billed where the provider's own count is
 * missing. It accepts any form and never throws: deltas of further choices are parsed only here, and an error in them must
 * not fail the answer.
 * @param form the form in which earlier deltas of the same answer had calls: calls in the other form are copies
 */
export function producedTextBytes(message: unknown, form?: CallForm): number {
  if (!isJsonObject(message)) return 0
  const { content, refusal, reasoning, reasoning_content: olderReasoning } = message
  // Where reasoning has two names, one is a copy of the other.
  const reasoningBytes = Math.max(textBytes(reasoning), textBytes(olderReasoning))
  const calls = calledIn(message, form)
  return (
    textBytes(content) +
    textBytes(refusal) +
    reasoningBytes +
    calls.reduce<number>((sum, call) => sum + argumentBytes(call), 0)
  )
}

function calledIn(message: JsonObject, form: CallForm | undefined): readonly unknown[] {
  const listed = listOf(message['tool_calls'])
  // Beside a list of calls, one in the older form is a copy.
  if (listed.length > 0) return form === 'single' ? [] : listed.map(functionOf)
  return form === 'list' ? [] : [message['function_call']]
}

/** Text, or the parts of a list: objects with `text` or `thinking`, which may be a list again. */
function textBytes(value: unknown, depth = 0): number {
  if (typeof value === 'string') return utf8Length(value)
  if (depth > MAX_DEPTH) return 0
  return listOf(value).reduce<number>((sum, part) => {
    if (!isJsonObject(part)) return sum
    return sum + textBytes(part['text'], depth + 1) + textBytes(part['thinking'], depth + 1)
  }, 0)
}

/** Maximum nesting: parts with thinking contain parts once more. */
const MAX_DEPTH = 2

function functionOf(call: unknown): unknown {
  return isJsonObject(call) ? call['function'] : undefined
}

function argumentBytes(called: unknown): number {
  const given = isJsonObject(called) ? called['arguments'] : undefined
  if (typeof given === 'string') return utf8Length(given)
  return isJsonObject(given) ? printedBytes(given) : 0
}

/**
 * An object that is nested too deeply cannot be serialised. Where it is part of the answer, the answer fails
 * elsewhere.
 */
function printedBytes(value: JsonObject): number {
  try {
    return utf8Length(printJson(value))
  } catch {
    return 0
  }
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
