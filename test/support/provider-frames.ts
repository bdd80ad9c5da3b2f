/** Frames of a scripted provider's chat stream. */

export function frame(delta: object, finishReason: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finishReason }]
  return `data: ${JSON.stringify({ id: 'p', object: 'chat.completion.chunk', choices })}\n\n`
}

const USAGE = {
  prompt_tokens: 20,
  completion_tokens: 8,
  prompt_tokens_details: { cached_tokens: 5 },
}

/** A whole stream: these deltas, the finish reason, usage and the terminator. */
export function streamOf(deltas: readonly object[], finishReason = 'stop'): string[] {
  const usage = JSON.stringify({ id: 'p', choices: [], usage: USAGE })
  return [
    ...deltas.map((delta) => frame(delta)),
    frame({}, finishReason),
    `data: ${usage}\n\n`,
    'data: [DONE]\n\n',
  ]
}

/** A delta with one whole tool call. */
export function toolDelta(index: number, name: string, args: string): object {
  const called = { name, arguments: args }
  return { tool_calls: [{ index, id: `call_${index}`, type: 'function', function: called }] }
}
