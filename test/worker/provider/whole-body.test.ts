import { describe, expect, it } from 'vitest'
import { ApiError } from '../../../src/worker/http/errors.ts'
import { AnswerRoom } from '../../../src/worker/provider/answer-room.ts'
import { AttemptClock } from '../../../src/worker/provider/attempt-clock.ts'
import { Budget } from '../../../src/worker/routing/budget.ts'
import { readWholeBody } from '../../../src/worker/provider/whole-body.ts'

const MIB = 1024 * 1024
const PIECE = 50_000

/** What is taken before a provider is asked. */
const ORDINARY = 65_536

/** An answer of so many bytes in pieces, and whether its sender was told to stop. */
function answer(bytes: number) {
  let left = bytes
  let stopped = false
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      const piece = Math.min(PIECE, left)
      left -= piece
      if (piece === 0) controller.close()
      else controller.enqueue(new Uint8Array(piece).fill(1))
    },
    cancel: () => void (stopped = true),
  })
  return { body, stopped: () => stopped }
}

function read(body: ReadableStream<Uint8Array>, declared: number | undefined, most = Infinity) {
  const taken: number[] = []
  const takeMemory = (bytes: number) => {
    const sum = taken.reduce((all, one) => all + one, bytes)
    if (sum > most) throw new ApiError('service_unavailable', 'There is no room.')
    taken.push(bytes)
  }
  const clock = new AttemptClock(new Budget(Date.now), () => 0)
  const outcome = readWholeBody(
    { response: new Response(body), declaredBytes: declared },
    clock,
    new AnswerRoom(takeMemory),
  )
  return { taken, outcome: outcome.catch((reason: unknown) => reason) }
}

const lengthOf = (outcome: unknown) => (outcome instanceof Uint8Array ? outcome.length : outcome)

describe('the memory of a whole answer', () => {
  it('is taken once, before any of it is read, where its length is declared', async () => {
    const { body } = answer(3 * PIECE)
    const { taken, outcome } = read(body, 3 * PIECE)
    expect(taken).toEqual([ORDINARY, 3 * PIECE - ORDINARY])
    expect(lengthOf(await outcome)).toBe(3 * PIECE)
    expect(taken).toHaveLength(2)
  })

  it('is taken as it comes where no length is declared, never less than has come', async () => {
    const { body } = answer(1_000_000)
    const { taken, outcome } = read(body, undefined)
    expect(lengthOf(await outcome)).toBe(1_000_000)
    const sum = taken.reduce((all, one) => all + one, 0)
    expect(sum).toBeGreaterThanOrEqual(1_000_000)
    expect(sum).toBeLessThan(1_000_000 + 65_536)
  })

  it.each([[1_000_000], [undefined]])(
    'that is not there ends the answer (declared: %s)',
    async (declared) => {
      const { body, stopped } = answer(1_000_000)
      const { outcome } = read(body, declared, 200_000)
      expect(await outcome).toMatchObject({
        code: 'service_unavailable',
        message: 'There is no room.',
      })
      expect(stopped()).toBe(true)
    },
  )

  it.each([[17 * MIB], [undefined]])(
    'is not given to more than 16 MiB (declared: %s)',
    async (declared) => {
      const { body, stopped } = answer(17 * MIB)
      const { taken, outcome } = read(body, declared)
      expect(await outcome).toMatchObject({ code: 'answer_too_long' })
      expect(taken.reduce((all, one) => all + one, 0)).toBeLessThanOrEqual(16 * MIB + 65_536)
      expect(stopped()).toBe(true)
    },
  )
})
