import type { AnswerFormat, LastEvents, OrderedFormat } from '../completion/format.ts'
import { blockEnd, blockJson, messageJson, messageStop } from '../formats/message-json.ts'
import { MessagesChunks } from '../formats/messages-chunks.ts'
import { anthropicErrorBody, anthropicStreamError } from '../http/anthropic-errors.ts'
import type { AnswerHead } from '../stream/answer-head.ts'
import { Blocks, type BlockHead } from '../stream/blocks.ts'
import { EventText } from '../stream/event-text.ts'
import { choiceDelta, type ProviderAnswer } from '../stream/provider-answer.ts'
import type { UsageReport } from '../stream/usage-tally.ts'

/** The most that the stop sequences of a request may take in the header that orders its chunks from the daemon, characters. */
const MAX_ORDERED_CHARACTERS = 2_048

/** The parts of a request that its answer depends on. */
export interface AnswerOptions {
  /** The router's own, shown until the provider has counted. */
  readonly promptEstimate: number
  readonly stopSequences: readonly string[]
}

/** How the answers of `/v1/messages` are written. */
export function messagesFormat({ promptEstimate, stopSequences }: AnswerOptions): AnswerFormat {
  return {
    idPrefix: 'msg_',
    chunkWriter: (head, takeMemory) =>
      new MessagesChunks(head, { promptEstimate, stopSequences, takeMemory }),
    chunkFormat: () => orderedFormat(promptEstimate, stopSequences),
    lastEvents: () => LAST_EVENTS,
    wholeBody: (answer, head, usage, service) =>
      messageBody(answer, head, usage, service, stopSequences),
  }
}

/** Undefined where the stop sequences are too long for a header; the daemon then writes no chunks. */
function orderedFormat(
  prompt_estimate: number,
  stopSequences: readonly string[],
): OrderedFormat | undefined {
  const stop_sequences = [...stopSequences]
  const printed = encodeURIComponent(JSON.stringify(stop_sequences))
  if (printed.length > MAX_ORDERED_CHARACTERS) return undefined
  return { format: { door: 'messages', prompt_estimate, stop_sequences } }
}

const LAST_EVENTS: LastEvents = {
  close: (_tail, _end, service) => {
    const events = new EventText()
    events.add('message_stop', { service })
    return events.take()
  },
  /**
   * The error event, after the end of a block of text or thinking that is open: where no block has ended, Claude Code
   * repeats the request without streaming. A tool call is left open, because some clients run it as soon as it has
   * ended.
   */
  fail: (tail, error) => {
    const delivered = tail === undefined || tail.blocks > 0
    const open = tail?.open ?? null
    const ended = tail && open !== null && open !== 'tool' ? blockEnd(tail.blocks - 1, open) : ''
    const body = delivered ? anthropicStreamError(error) : anthropicErrorBody(error)
    return `${ended}event: error\ndata: ${JSON.stringify(body)}\n\n`
  },
}

/** The body of a message that is not streamed. The format has one choice: the first. */
function messageBody(
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
