import { describe, expect, it } from 'vitest'
import { ApiError } from '../../../src/worker/http/errors.ts'
import { AnswerRoom } from '../../../src/worker/provider/answer-room.ts'

const KIB = 1024
const MIB = 1024 * KIB

/** A room where there is so much memory, and what it took. */
function roomOf(most = Infinity) {
  const taken: number[] = []
  const sum = () => taken.reduce((all, one) => all + one, 0)
  const room = () =>
    new AnswerRoom((bytes) => {
      if (sum() + bytes > most) throw new ApiError('rate_limit_exceeded', 'no memory')
      taken.push(bytes)
    })
  return { room, taken }
}

describe('the room for a whole answer', () => {
  it('takes what an ordinary answer needs at once, and no more for one', () => {
    const { room, taken } = roomOf()
    const made = room()
    made.hold(1, true)
    made.hold(64 * KIB, false)
    expect(taken).toEqual([64 * KIB])
  })

  it('is not made where there is no memory for an ordinary answer', () => {
    expect(roomOf(64 * KIB - 1).room).toThrow('no memory')
  })

  it('grows to what is declared, and otherwise in steps', () => {
    const { room, taken } = roomOf()
    const made = room()
    made.hold(64 * KIB + 1, true)
    made.hold(64 * KIB + 2, false)
    made.hold(MIB, false)
    expect(taken).toEqual([64 * KIB, 1, 64 * KIB, MIB - 128 * KIB - 1])
  })

  it('is used by one attempt after the other, and knows what has come of the latest', () => {
    const { room, taken } = roomOf()
    const made = room()
    expect(made.come).toBeUndefined()
    made.hold(MIB, true)
    expect(made.come).toBe(MIB)
    made.empty()
    expect(made.come).toBeUndefined()
    made.hold(MIB, true)
    expect(taken).toEqual([64 * KIB, MIB - 64 * KIB])
  })

  it.each([
    ['there is no memory for it', 2 * MIB, 'rate_limit_exceeded'],
    ['it is larger than any that is taken', 16 * MIB + 1, 'answer_too_long'],
  ])('knows of an answer although %s', (_, bytes, code) => {
    const made = roomOf(MIB).room()
    expect(() => made.hold(bytes, true)).toThrow(expect.objectContaining({ code }))
    expect(made.come).toBe(bytes)
  })
})
