import type { AnswerHead } from '../stream/answer-head.ts'
import { Blocks, type BlockHead } from '../stream/blocks.ts'
import { choiceDelta, type ProviderAnswer } from '../stream/provider-answer.ts'
import type { UsageReport } from '../stream/usage-tally.ts'
import { blockJson, messageJson, messageStop } from './message-json.ts'

/** The body of a message that is not streamed. The format has one choice: the first. */
export function messageBody(
  { choices: [choice] }: ProviderAnswer,
  { id, model }: AnswerHead,
  usage: UsageReport | undefined,
  service: object,
  stopSequences: readonly string[],
): object {
  if (choice === undefined) throw new Error('internal error: an answer without a choice')
  const written: { readonly head: BlockHead; text: string }[] = []
  const blocks = new Blocks({
    start: (head) => void written.push({ head, text: '' }),
    piece: (text) => {
      const last = written.at(-1)
      if (last !== undefined) last.text += text
    },
    end: () => {},
  })
  blocks.take(choiceDelta(choice))
  blocks.finish()
  const { refusal, toolCalls } = choice
  const contains = { tool: toolCalls.length > 0, refusal: refusal !== undefined }
  const stop = messageStop(choice, contains, stopSequences)
  const json = written.map(({ head, text }) => blockJson(head, text))
  return { ...messageJson({ id, model, content: json, stop, usage }), service }
}
