import { describe, expect, test } from 'vitest'
import { readWithin } from '../../src/client/read-within.ts'

/** A body of pieces of one byte, and whether its reader gave it up. */
function bodyOf(pieces: number) {
  let [left, cancelled] = [pieces, false]
  const body = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        if (left-- > 0) controller.enqueue(Uint8Array.of(left))
        else controller.close()
      },
      cancel: () => void (cancelled = true),
    },
    { highWaterMark: 0 },
  )
  return { body, isCancelled: () => cancelled, left: () => left }
}

describe('a body of limited size', () => {
  test('is read whole up to the limit, and empty where there is none', async () => {
    expect(await readWithin(bodyOf(3).body, 3)).toEqual(Uint8Array.of(2, 1, 0))
    expect(await readWithin(null, 3)).toEqual(new Uint8Array())
  })

  test('is given up once it is larger', async () => {
    const { body, isCancelled, left } = bodyOf(1000)
    await expect(readWithin(body, 3)).rejects.toThrow('the answer is too large')
    expect(isCancelled()).toBe(true)
    expect(left()).toBe(996)
  })
})
