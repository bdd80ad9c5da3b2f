import { describe, expect, test } from 'vitest'
import { fromUtf8 } from '../../../src/protocol/bytes.ts'
import { printInParts } from '../../../src/worker/json/print-in-parts.ts'
import { runAtOnce } from '../../../src/worker/json/steps.ts'
import { messageStop } from '../../../src/worker/formats/message-json.ts'
import { incompleteReason } from '../../../src/worker/formats/response-json.ts'
import { messagesFormat } from '../../../src/worker/messages/encoder.ts'
import { UsageTally } from '../../../src/worker/stream/usage-tally.ts'

/** The text of the message that a provider's call of a tool becomes. */
function messageTextOfCall(args: string): string {
  const choice = {
    index: 0,
    reasoning: undefined,
    content: undefined,
    refusal: undefined,
    toolCalls: [
      { id: 'call_1', type: 'function' as const, function: { name: 'f', arguments: args } },
    ],
    logprobs: null,
    finishReason: 'tool_calls',
  }
  const answer = { choices: [choice], tally: new UsageTally(), providerResponseId: undefined }
  const head = { id: 'msg_1', created: 1, model: 'm' }
  const body = messagesFormat({ promptEstimate: 7, stopSequences: [] }).wholeBody(
    answer,
    head,
    undefined,
    {},
  )
  return fromUtf8(runAtOnce(printInParts(body)))
}

function messageOfCall(args: string) {
  return JSON.parse(messageTextOfCall(args))
}

describe('arguments of a call', () => {
  test('become an object', () => {
    expect(messageOfCall('{"a":[1]}').content[0].input).toEqual({ a: [1] })
  })

  test('keep integers that a double cannot hold, as in a stream: a client would call another id', () => {
    const args =
      '{"id":12345678901234567891,"ids":[-9007199254740993,5],"text":"12345678901234567891"}'
    expect(messageTextOfCall(args)).toContain(`"input":${args}`)
    const many = `{"ids":[12345678901234567891${',1234567890'.repeat(5_000)}]}`
    expect(messageTextOfCall(many)).toContain(`"input":${many}`)
  })

  test('of more than 256 Ki characters, whose values are not looked at one by one, are numbers as usual', () => {
    const args = `{"id":12345678901234567891,"text":"${'x'.repeat(256 * 1024)}"}`
    expect(messageTextOfCall(args)).toContain('"input":{"id":12345678901234567000,')
  })

  test('nested too deeply to be written are passed on as text: the answer is served and billed', () => {
    const args = '['.repeat(100_000) + ']'.repeat(100_000)
    expect(messageOfCall(args).content[0].input).toEqual({ arguments: args })
  })
})

test.each(['constructor', '__proto__', 'toString'])(
  'the finish reason %s, a name that every object has, is one like any unknown one',
  (finishReason) => {
    const stop = messageStop({ finishReason }, { tool: false, refusal: false }, [finishReason])
    expect(stop).toEqual({ stop_reason: 'end_turn', stop_sequence: null })
    expect(incompleteReason({ finishReason })).toBeUndefined()
  },
)
