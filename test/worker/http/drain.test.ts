import { describe, expect, it } from 'vitest'
import { Drains } from '../../../src/worker/http/drain.ts'

function body(pieces: number, bytes: number) {
  const state = { pulled: 0, cancelled: false }
  const stream = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        if (state.pulled++ < pieces) controller.enqueue(new Uint8Array(bytes))
        else controller.close()
      },
      cancel: () => void (state.cancelled = true),
    },
    { highWaterMark: 0 },
  )
  return { stream, state }
}

describe('what a refused client still sends', () => {
  it('is read to its end', async () => {
    const { stream, state } = body(3, 10)
    await new Drains().drain(stream)
    expect(state).toEqual({ pulled: 4, cancelled: false })
  })

  it('is read for 32 MiB at most', async () => {
    const { stream, state } = body(40, 1024 * 1024)
    await new Drains().drain(stream)
    expect(state).toEqual({ pulled: 32, cancelled: true })
  })

  it('is not read where too many are being read out already', async () => {
    const drains = new Drains()
    const endless = () =>
      new ReadableStream<Uint8Array>({ pull: () => new Promise<void>(() => {}) })
    for (let i = 0; i < 128; i++) void drains.drain(endless())
    const { stream, state } = body(3, 10)
    await drains.drain(stream)
    expect(state.pulled).toBe(0)
  })

  it('may be nothing', async () => {
    await expect(new Drains().drain(null)).resolves.toBeUndefined()
  })
})
