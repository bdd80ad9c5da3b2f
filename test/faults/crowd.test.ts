import { describe, expect, it } from 'vitest'
import { ChunkJoiner } from '../../src/enclave/egress/chunk-joiner.ts'
import { openDirectWindow } from '../../src/worker/stream/direct-window.ts'
import { FRAME_MS, MIN_WINDOW_MS, STREAMS } from './crowd.ts'

/**
 * So many streams that chunks are joined, whatever the machine does: how many pieces come while the trials run says nothing of it where
 * the machine is busy.
 */
describe('the crowd beside the trials', () => {
  it('is so large that the worker joins what each stream sends in that time', () => {
    let now = 1_000
    const window = openDirectWindow(() => now)
    for (let stream = 0; stream < STREAMS; stream += 1) window.enter({ arrivedAt: now })
    // The longest silence of each of them.
    now += FRAME_MS
    expect(window.at(now)).toBeGreaterThanOrEqual(2 * MIN_WINDOW_MS)
  })

  it('is so large that the daemon does', () => {
    let now = 1_000
    const joiner = new ChunkJoiner({ now: () => now, every: () => () => {}, soon: () => {} })
    const past = { over: true, read: () => {} }
    const join = (send: (bytes: Buffer) => void) => joiner.join(send, past)
    const chunk = Buffer.from('data: 1\n\n')
    for (let stream = 1; stream < STREAMS; stream += 1) join(() => {}).push(chunk)
    now += FRAME_MS
    const sent: number[] = []
    const talker = join(() => void sent.push(now))
    talker.push(chunk)
    now += 2 * MIN_WINDOW_MS
    talker.push(chunk)
    expect(sent).toEqual([1_000 + FRAME_MS])
    now += 2 * MIN_WINDOW_MS
    talker.push(chunk)
    expect(sent).toHaveLength(2)
  })
})
