import { setTimeout as delay } from 'node:timers/promises'
import { Readable, Writable } from 'node:stream'
import { expect, it } from 'vitest'
import {
  ChunkJoiner,
  type Opening,
  type PausableSource,
} from '../../../src/enclave/egress/chunk-joiner.ts'
import { EventMemory } from '../../../src/enclave/egress/event-memory.ts'
import { requestedStream } from '../../../src/enclave/egress/requested-stream.ts'
import { WrittenStream } from '../../../src/enclave/egress/written-stream.ts'
import { STREAM_SPEC } from '../../support/stream-spec.ts'

const SPEC = { ...STREAM_SPEC, idle_ms: 50 }

const TEXT = Buffer.from('data: {"choices":[{"delta":{"content":"Hello"}}]}\n\n')

/** A joiner that lets a test decide when its streams rest. */
class TestJoiner extends ChunkJoiner {
  readonly sources: PausableSource[] = []

  override join(send: (bytes: Buffer) => void, opening: Opening, source: PausableSource) {
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
    source: {
      pause: () => void happened.push('pause'),
      resume: () => void happened.push('resume'),
    },
    memory: new EventMemory(),
    now: Date.now,
    log: (event) => happened.push(event),
    disconnected: () => {},
    ended: () => happened.push('ended'),
  })
  const [source] = joiner.sources
  answer.emit('data', TEXT)
  source?.pause()
  // What was read before it rests does not start its time.
  answer.emit('data', TEXT)
  await delay(300)
  expect(happened).toEqual(['pause'])
  source?.resume()
  await expect.poll(() => happened).toEqual(['pause', 'resume', 'ended'])
  expect(stream.stop().ending).toEqual({ kind: 'idle' })
})
