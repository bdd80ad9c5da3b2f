import { setTimeout as delay } from 'node:timers/promises'
import { Readable, Writable } from 'node:stream'
import { expect, it } from 'vitest'
import {
  ChunkJoiner,
  type Opening,
  type RestingSource,
} from '../../../src/enclave/egress/chunk-joiner.ts'
import { EventMemory } from '../../../src/enclave/egress/event-memory.ts'
import { requestedStream } from '../../../src/enclave/egress/requested-stream.ts'
import { WrittenStream } from '../../../src/enclave/egress/written-stream.ts'
import { STREAM_SPEC } from '../../support/stream-spec.ts'

const SPEC = { ...STREAM_SPEC, idle_ms: 50 }

const TEXT = Buffer.from('data: {"choices":[{"delta":{"content":"Hello"}}]}\n\n')

/** A joiner that lets a test decide when its streams rest. */
class TestJoiner extends ChunkJoiner {
  readonly sources: RestingSource[] = []

  override join(send: (bytes: Buffer) => void, opening: Opening, source: RestingSource) {
    this.sources.push(source)
    return super.join(send, opening, source)
  }
}

it('a provider that is not read is not taken for silent, and is again once it is read', async () => {
  const joiner = new TestJoiner({ now: Date.now })
  const answer = new Readable({ read: () => {} })
  const response = new Writable({ write: (_bytes, _encoding, done) => done() })
  const happened: string[] = []
  const stream = new WrittenStream(requestedStream(SPEC, Buffer.alloc(0)), answer, response, {
    joiner,
    source: { rest: () => void happened.push('rest'), wake: () => void happened.push('wake') },
    memory: new EventMemory(),
    now: Date.now,
    log: (event) => happened.push(event),
    disconnected: () => {},
    ended: () => happened.push('ended'),
  })
  const [source] = joiner.sources
  answer.emit('data', TEXT)
  source?.rest()
  // What was read before it rests does not start its time.
  answer.emit('data', TEXT)
  await delay(300)
  expect(happened).toEqual(['rest'])
  source?.wake()
  await expect.poll(() => happened).toEqual(['rest', 'wake', 'ended'])
  expect(stream.stop().ending).toEqual({ kind: 'idle' })
})
