import { expect, it } from 'vitest'
import { fromUtf8 } from '../../../src/protocol/bytes.ts'
import { MessagesChunks } from '../../../src/worker/formats/messages-chunks.ts'
import { ResponsesChunks } from '../../../src/worker/formats/responses-chunks.ts'
import { AnswerChunks } from '../../../src/worker/stream/answer-chunks.ts'
import { BrokenStream } from '../../../src/worker/stream/broken-stream.ts'
import type { ChunkWriter } from '../../../src/worker/stream/encoder.ts'
import { OPTIONS } from '../../support/golden-streams.ts'

const HELD = { takeMemory: noMemory }

function noMemory(): never {
  throw new Error('none is left')
}

/** What a client receives of an answer whose deltas are these, and how it ended. */
function written(writer: ChunkWriter, deltas: readonly object[]) {
  const chunks = new AnswerChunks({ id: 'a', includeReasoning: true }, writer)
  const events = deltas.map((delta) => `data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`)
  let text = ''
  try {
    for (const event of events) text += fromUtf8(chunks.push(new TextEncoder().encode(event)))
  } catch (error) {
    if (error instanceof BrokenStream) return { text: text + fromUtf8(error.output), error }
  }
  throw new Error('there was memory')
}

const LONG = 'x'.repeat(200_000)

it('of a delta that runs out of memory, the events that were written before are delivered, so that no number is missing', () => {
  const opening = () => ({ text: '', count: 0 })
  const items = { answerId: 'a', tools: new Map(), encryptedContent: false }
  const writer = new ResponsesChunks({ ...items, opening, ...HELD })
  const { text, error } = written(writer, [{ content: 'Hello' }, { reasoning: 'r', content: LONG }])
  expect(error.reason).toBe('no_memory')
  expect(text).toContain('response.reasoning_summary_text.delta')
  const numbers = [...text.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number))
  expect(numbers).toEqual(Array.from({ length: writer.tail.events }, (_, index) => index))
})

it('of a message, too: each block whose start was counted has been started', () => {
  const writer = new MessagesChunks(OPTIONS, { promptEstimate: 1, ...HELD })
  const call = { index: 0, id: 'c', function: { name: 'f', arguments: '{' } }
  const waiting = { index: 1, id: 'd', function: { name: 'g', arguments: LONG } }
  const { text, error } = written(writer, [
    { content: 'Hello' },
    { reasoning: 'r', tool_calls: [call, waiting] },
  ])
  expect(error.reason).toBe('no_memory')
  expect(text.split('event: content_block_start')).toHaveLength(writer.tail.blocks + 1)
})
