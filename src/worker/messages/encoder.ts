import type { MessagesFormat } from '../../protocol/stream-record.ts'
import type { AnswerFormat, LastEvents } from '../completion/format.ts'
import { messageBody } from '../formats/message-body.ts'
import { blockEnd } from '../formats/message-json.ts'
import { MessagesChunks } from '../formats/messages-chunks.ts'
import { anthropicErrorBody, anthropicStreamError } from '../http/anthropic-errors.ts'
import { EventText } from '../stream/event-text.ts'

/** Maximum length of the stop sequences in the header that tells the daemon how to write the answer, characters. */
const MAX_ORDERED_CHARACTERS = 2_048

/** The parts of a request that its answer depends on. */
export interface AnswerOptions {
  /** The router's own estimate of the prompt, shown until the provider's count is known. */
  readonly promptEstimate: number
  readonly stopSequences: readonly string[]
}

/** How answers of `/v1/messages` are written. */
export function messagesFormat({ promptEstimate, stopSequences }: AnswerOptions): AnswerFormat {
  return {
    idPrefix: 'msg_',
    chunkWriter: (head, takeMemory) =>
      new MessagesChunks(head, { promptEstimate, stopSequences, takeMemory }),
    chunkFormat: () => streamFormat(promptEstimate, stopSequences),
    wholeFormat: () => formatForDaemon(promptEstimate, stopSequences),
    lastEvents: () => LAST_EVENTS,
    wholeBody: (answer, head, usage, service) =>
      messageBody(answer, head, usage, service, stopSequences),
  }
}

/**
 * The format for the daemon; undefined where the stop sequences are too long for a header, so the daemon must not write the
 * answer.
 */
function formatForDaemon(
  prompt_estimate: number,
  stopSequences: readonly string[],
): MessagesFormat | undefined {
  const stop_sequences = [...stopSequences]
  const printed = encodeURIComponent(JSON.stringify(stop_sequences))
  if (printed.length > MAX_ORDERED_CHARACTERS) return undefined
  return { door: 'messages', prompt_estimate, stop_sequences }
}

function streamFormat(promptEstimate: number, stopSequences: readonly string[]) {
  const format = formatForDaemon(promptEstimate, stopSequences)
  return format && { format }
}

const LAST_EVENTS: LastEvents = {
  close: (_tail, _end, service) => {
    const events = new EventText()
    events.add('message_stop', { service })
    return events.take()
  },
  /**
   * The error event, after the end of an open text or thinking block: if no block has ended, Claude Code repeats the request
   * without streaming. A tool call stays open, because some clients run it as soon as it ends.
   */
  fail: (tail, error) => {
    const delivered = tail === undefined || tail.blocks > 0
    const open = tail?.open ?? null
    const ended = tail && open !== null && open !== 'tool' ? blockEnd(tail.blocks - 1, open) : ''
    const body = delivered ? anthropicStreamError(error) : anthropicErrorBody(error)
    return `${ended}event: error\ndata: ${JSON.stringify(body)}\n\n`
  },
}
