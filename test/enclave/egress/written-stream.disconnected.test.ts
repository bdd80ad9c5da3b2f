import { Readable, Writable } from 'node:stream'
import { expect, it } from 'vitest'
import { ChunkJoiner } from '../../../src/enclave/egress/chunk-joiner.ts'
import { EventMemory } from '../../../src/enclave/egress/event-memory.ts'
import { requestedStream } from '../../../src/enclave/egress/requested-stream.ts'
import { WrittenStream } from '../../../src/enclave/egress/written-stream.ts'
import { STREAM_SPEC } from '../../support/stream-spec.ts'

const TEXT = 'data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n'
const STOP = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'

/** A stream on its way to a worker that takes everything at once, or nothing. */
function open(worker: 'takes all' | 'takes nothing') {
  const answer = new Readable({ read: () => {} })
  const response = new Writable({
    write: (_bytes, _encoding, done) => {
      if (worker === 'takes all') done()
    },
  })
  const said: string[] = []
  const stream = new WrittenStream(
    requestedStream(STREAM_SPEC, new Uint8Array(0)),
    answer,
    response,
    {
      joiner: new ChunkJoiner({ now: Date.now }),
      source: { pause: () => undefined, resume: () => undefined },
      memory: new EventMemory(),
      now: Date.now,
      log: () => {},
      ended: ({ ending }) => said.push(ending.kind),
      disconnected: () => said.push('disconnected'),
    },
  )
  const closed = new Promise((resolve) => response.once('close', resolve))
  const give = (text: string) => void answer.emit('data', Buffer.from(text))
  return { answer, response, stream, said, closed, give }
}

it('a stream does not lose a worker that has taken all of it', async () => {
  const { answer, said, closed, give } = open('takes all')
  give(TEXT)
  give(STOP)
  answer.emit('end')
  await closed
  expect(said).toEqual(['complete'])
})

it('a stream loses one that closes its connection in the middle', async () => {
  const { response, said, closed, give } = open('takes all')
  give(TEXT)
  response.destroy()
  await closed
  expect(said).toEqual(['stopped', 'disconnected'])
})

it('a stream loses one that closes its connection before it has taken the end', async () => {
  const { answer, response, said, closed, give } = open('takes nothing')
  give(TEXT)
  give(STOP)
  answer.emit('end')
  response.destroy()
  await closed
  expect(said).toEqual(['complete', 'disconnected'])
})
